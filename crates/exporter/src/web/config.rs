//! The web configuration file, in the format that Prometheus exporters share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use axum::http::{HeaderName, HeaderValue};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use serde::Deserialize;

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: Option<Tls>,
    http_server_config: Option<Http>,
    basic_auth_users: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tls {
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    client_ca_file: Option<PathBuf>,
    client_auth_type: ClientAuth,
    min_version: Version,
    max_version: Option<Version>,
    cipher_suites: Vec<String>,
    curve_preferences: Vec<String>,
    prefer_server_cipher_suites: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum ClientAuth {
    #[default]
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Version {
    #[default]
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Http {
    /// Taken as it is: what is served is HTTP/1.1 either way.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: BTreeMap<String, String>,
}

/// The headers that the file may set.
const HEADERS: [&str; 5] = [
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
];

/// What the file asks for, ready for use.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebConfig {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Names, and bcrypt hashes of their passwords. Nobody is asked if there are none.
    pub(crate) users: BTreeMap<String, String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The files that it was made from beside its own.
    pub(crate) files: Vec<PathBuf>,
}

impl WebConfig {
    /// Reads the file at `path`, and those that it names.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).context("cannot be read")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        WebConfig::of_text(&text, folder)
    }

    /// What `text` asks for; names of files in it are relative to `folder`.
    pub(crate) fn of_text(text: &str, folder: &Path) -> anyhow::Result<Self> {
        // An empty file is one that asks for nothing.
        let file: Option<File> = serde_yaml_ng::from_str(text).map_err(one_line)?;
        let File { tls_server_config, http_server_config, basic_auth_users } =
            file.unwrap_or_default();
        let mut config = WebConfig::default();
        if let Some(tls) = tls_server_config {
            let (server, files) = tls.server(folder).context("tls_server_config")?;
            (config.tls, config.files) = (Some(Arc::new(server)), files);
        }
        config.headers = http_server_config.unwrap_or_default().checked()?;
        config.users = basic_auth_users.unwrap_or_default();
        for (user, hash) in &config.users {
            if user.is_empty() || user.contains(':') {
                bail!("basic_auth_users: a name is not empty and has no colon");
            }
            let made_by = "make one with: htpasswd -nBC 10 '' | tr -d ':\\n'";
            bcrypt::HashParts::from_str(hash).map_err(|_| {
                anyhow!("basic_auth_users: what {user:?} has is no bcrypt hash; {made_by}")
            })?;
        }
        Ok(config)
    }
}

/// What is wrong with a text, and where, in one line.
fn one_line(error: serde_yaml_ng::Error) -> anyhow::Error {
    anyhow!("{}", error.to_string().replace('\n', " "))
}

impl Http {
    fn checked(self) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
        let header = |(name, value): (String, String)| {
            let known = HEADERS.iter().any(|header| header.eq_ignore_ascii_case(&name));
            let header = name.parse().ok().filter(|_| known);
            let header: HeaderName = header.ok_or_else(|| {
                let known = HEADERS.join(", ");
                anyhow!("http_server_config: header {name:?} cannot be set; these can: {known}")
            })?;
            let value = value.parse().map_err(|_| {
                anyhow!("http_server_config: what header {name:?} is set to is no header's value")
            })?;
            Ok((header, value))
        };
        self.headers.into_iter().map(header).collect()
    }
}

impl Tls {
    /// The server's side, and the files that it was made from.
    fn server(self, folder: &Path) -> anyhow::Result<(ServerConfig, Vec<PathBuf>)> {
        let file = |given: &Option<PathBuf>, name: &str| {
            let given = given.as_ref().filter(|path| !path.as_os_str().is_empty());
            given.map(|path| folder.join(path)).with_context(|| format!("{name} is missing"))
        };
        let (cert_file, key_file) =
            (file(&self.cert_file, "cert_file")?, file(&self.key_file, "key_file")?);
        let certificates = certificates(&cert_file)?;
        let key = PrivateKeyDer::from_pem_file(&key_file)
            .map_err(|error| anyhow!("no private key in {}: {error}", key_file.display()))?;
        let mut files = vec![cert_file, key_file];

        let provider = Arc::new(self.provider()?);
        let verifier = match self.client_auth_type {
            ClientAuth::NoClientCert if self.client_ca_file.is_some() => {
                bail!("client_ca_file is set, and client_auth_type asks for no certificate")
            }
            ClientAuth::NoClientCert => WebPkiClientVerifier::no_client_auth(),
            asked => {
                let file = file(&self.client_ca_file, "client_ca_file")?;
                let verifier = verifier(asked, &file, &provider)?;
                files.push(file);
                verifier
            }
        };
        let builder = ServerConfig::builder_with_provider(provider);
        let mut server = builder
            .with_protocol_versions(&self.versions()?)
            .context("the cipher suites do not go with the versions")?
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates, key)
            .context("the certificate does not go with the key")?;
        server.ignore_client_order = self.prefer_server_cipher_suites.unwrap_or(true);
        Ok((server, files))
    }

    fn versions(&self) -> anyhow::Result<Vec<&'static SupportedProtocolVersion>> {
        let max = self.max_version.unwrap_or(Version::Tls13);
        let all = [(Version::Tls12, &TLS12), (Version::Tls13, &TLS13)];
        let asked =
            all.into_iter().filter(|(version, _)| (self.min_version..=max).contains(version));
        let asked: Vec<_> = asked.map(|(_, version)| version).collect();
        if asked.is_empty() {
            bail!("max_version is less than min_version");
        }
        Ok(asked)
    }

    /// The cryptography that may be used.
    #[allow(deprecated, reason = "the other provider takes minutes to build, for the same suites")]
    fn provider(&self) -> anyhow::Result<CryptoProvider> {
        let mut provider = ring::default_provider();
        if !self.cipher_suites.is_empty() {
            // TLS 1.3 has its own, which are not for choosing: as in the other exporters.
            let suites = &provider.cipher_suites;
            let name = |suite: &rustls::SupportedCipherSuite| {
                format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
            };
            let all: Vec<_> = suites.iter().map(name).collect();
            for asked in &self.cipher_suites {
                if !all.contains(asked) {
                    bail!("cipher suite {asked:?} is not known; these are: {}", all.join(", "));
                }
            }
            provider.cipher_suites.retain(|suite| {
                suite.tls13().is_some() || self.cipher_suites.contains(&name(suite))
            });
        }
        if !self.curve_preferences.is_empty() {
            let known = [
                ("X25519", ring::kx_group::X25519),
                ("CurveP256", ring::kx_group::SECP256R1),
                ("CurveP384", ring::kx_group::SECP384R1),
            ];
            let group = |asked: &String| {
                let group = known.iter().find(|(name, _)| name == asked).map(|(_, group)| *group);
                group.with_context(|| {
                    format!("curve {asked:?} is not known; these are: X25519, CurveP256, CurveP384")
                })
            };
            let groups = self.curve_preferences.iter().map(group);
            provider.kx_groups = groups.collect::<anyhow::Result<_>>()?;
        }
        Ok(provider)
    }
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let read: Vec<_> =
        read.map_err(|error| anyhow!("no certificate in {}: {error}", path.display()))?;
    if read.is_empty() {
        bail!("no certificate in {}", path.display());
    }
    Ok(read)
}

/// Who says that a client is one.
fn verifier(
    asked: ClientAuth,
    file: &Path,
    provider: &Arc<CryptoProvider>,
) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).with_context(|| format!("in {}", file.display()))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match asked {
        ClientAuth::VerifyClientCertIfGiven => builder.allow_unauthenticated(),
        _ => builder,
    };
    builder.build().with_context(|| format!("in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = WebConfig::of_text(text, Path::new("")).unwrap_err();
        let line = format!("{error:#}");
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    }

    #[test]
    fn an_empty_file_asks_for_nothing() {
        for text in ["", "# nothing\n", "basic_auth_users: {}\n", "{}"] {
            let config = WebConfig::of_text(text, Path::new("")).unwrap();
            assert!(config.tls.is_none() && config.users.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for (text, said) in [
            ("basic_auth_user: {}", "unknown field `basic_auth_user`"),
            ("tls_server_config:\n  key: x", "line 2"),
            ("tls_server_config: {}", "cert_file is missing"),
            ("tls_server_config:\n  cert_file: nowhere\n  key_file: nowhere", "nowhere"),
            ("tls_server_config:\n  client_auth_type: RequireAnyClientCert", "unknown variant"),
            ("tls_server_config:\n  min_version: SSL30", "TLS12"),
            ("basic_auth_users:\n  me: secret", "no bcrypt hash"),
            ("http_server_config:\n  headers:\n    Server: me", "cannot be set"),
            (
                "http_server_config:\n  headers:\n    X-Frame-Options: \"a\\nb\"",
                "no header's value",
            ),
            ("basic_auth_users:\n  me: \"open", "line 2"),
        ] {
            let line = refused(text);
            assert!(line.contains(said), "{text}: {line}");
        }
    }
}
