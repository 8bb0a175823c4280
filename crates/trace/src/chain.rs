//! A trace's spans, as a list that is cheap to clone and to append to.
//!
//! A reader takes the whole chain at once, and a trace whose physical compaction is held for long
//! has thousands of spans. So a chain is a list of shared segments: a clone copies a pointer for
//! each segment, an append copies at most one segment, and a rebuild keeps every span that did not
//! change.

use std::sync::Arc;

use differential_dataflow::trace::Span;
use timely::PartialOrder;

use crate::batch::SharedBatch;

/// How many spans a segment has at most: what an append may have to copy.
const SEGMENT: usize = 64;

type Shared<B> = Arc<Span<<B as SharedBatch>::Time, B>>;

/// The spans of a trace, oldest first: each begins where the one before it ends.
pub(crate) struct Chain<B: SharedBatch> {
    segments: Vec<Arc<Vec<Shared<B>>>>,
    len: usize,
}

impl<B: SharedBatch> Clone for Chain<B> {
    fn clone(&self) -> Self {
        Chain { segments: self.segments.clone(), len: self.len }
    }
}

impl<B: SharedBatch> Default for Chain<B> {
    fn default() -> Self {
        Chain { segments: Vec::new(), len: 0 }
    }
}

impl<B: SharedBatch> Chain<B> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shared<B>> {
        self.segments.iter().flat_map(|segment| segment.iter())
    }

    pub(crate) fn push(&mut self, span: Shared<B>) {
        self.len += 1;
        match self.segments.last_mut() {
            Some(last) if last.len() < SEGMENT => Arc::make_mut(last).push(span),
            _ => self.segments.push(Arc::new(vec![span])),
        }
    }

    /// The chain of the spans that `map_spans` shows, sharing with `self` those that are the same.
    pub(crate) fn rebuilt(
        &self,
        map_spans: impl FnOnce(&mut dyn FnMut(&Span<B::Time, B>)),
    ) -> Self {
        let mut known = self.iter().peekable();
        let mut spans = Vec::with_capacity(self.len.min(SEGMENT));
        let mut rebuilt = Chain::default();
        map_spans(&mut |span| {
            let span = match known.next_if(|known| same(known, span)) {
                Some(known) => Arc::clone(known),
                None => {
                    let replaced =
                        |known: &&Shared<B>| PartialOrder::less_equal(known.upper(), span.upper());
                    while known.next_if(replaced).is_some() {}
                    Arc::new(span.clone())
                }
            };
            spans.push(span);
            rebuilt.len += 1;
            if spans.len() == SEGMENT {
                rebuilt.segments.push(Arc::new(std::mem::take(&mut spans)));
            }
        });
        if !spans.is_empty() {
            rebuilt.segments.push(Arc::new(spans));
        }
        rebuilt
    }
}

fn same<B: SharedBatch>(one: &Span<B::Time, B>, other: &Span<B::Time, B>) -> bool {
    let batches = match (&one.inner, &other.inner) {
        (Some(one), Some(other)) => one.same(other),
        (None, None) => true,
        _ => false,
    };
    batches && one.desc == other.desc
}
