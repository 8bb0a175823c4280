//! The same series in OpenMetrics' text format, for those that ask for it.

/// What a client accepts, as far as it matters here.
pub(crate) fn is_asked_for(accept: &str) -> bool {
    let quality = |kind: &str| {
        let offers = accept.split(',').map(str::trim);
        let offer = offers.filter(|offer| offer.split(';').next().unwrap_or("").trim() == kind);
        let quality = |offer: &str| {
            let given = offer.split(';').find_map(|part| part.trim().strip_prefix("q="));
            given.map_or(Some(1.0), |given| given.parse::<f32>().ok()).unwrap_or(0.0)
        };
        offer.map(quality).fold(0.0, f32::max)
    };
    let asked = quality("application/openmetrics-text");
    asked > 0.0 && asked >= quality("text/plain")
}

/// OpenMetrics' content type.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The series of `text`, which is in Prometheus' text format.
///
/// A counter's family is called without the `_total` of its samples, nothing is empty, and an end
/// says that the whole was read.
pub(crate) fn of_text(text: &str) -> String {
    let counters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(text.len() + 6);
    for line in text.lines().filter(|line| !line.is_empty()) {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|kind| {
            let (name, rest) = line.strip_prefix(kind)?.split_once(' ')?;
            Some((kind, name, rest))
        });
        match described {
            Some((kind, name, rest)) => {
                let family = if counters.contains(&name) {
                    name.strip_suffix("_total").unwrap_or(name)
                } else {
                    name
                };
                let rest = if kind == "# HELP " { rest.replace('"', "\\\"") } else { rest.into() };
                out.extend([kind, family, " ", &rest, "\n"]);
            }
            None => out.extend([line, "\n"]),
        }
    }
    out + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_s_family_has_no_total_and_the_end_is_said() {
        let text = "# HELP a_total of \"a\"\n# TYPE a_total counter\na_total{x=\"1\"} 3\n\n\
                    # HELP b of b\n# TYPE b gauge\nb 0.5\n\n";
        let expected = "# HELP a of \\\"a\\\"\n# TYPE a counter\na_total{x=\"1\"} 3\n\
                        # HELP b of b\n# TYPE b gauge\nb 0.5\n# EOF\n";
        assert_eq!(of_text(text), expected);
        assert_eq!(of_text(""), "# EOF\n");
    }

    #[test]
    fn it_is_served_to_those_that_prefer_it_alone() {
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert!(is_asked_for(prometheus));
        assert!(is_asked_for("application/openmetrics-text"));
        for accept in ["", "*/*", "text/plain", "application/openmetrics-text;q=0, */*"] {
            assert!(!is_asked_for(accept), "{accept}");
        }
        assert!(!is_asked_for("application/openmetrics-text;q=0.2, text/plain;q=0.9"));
    }
}
