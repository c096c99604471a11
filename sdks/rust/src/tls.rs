//! TLS by rustls, where the feature is on.

/// What the user said about TLS.
#[derive(Clone, Default)]
pub(crate) struct TlsOptions {
    pub(crate) enabled: bool,
    #[cfg(feature = "rustls")]
    pub(crate) ca: Option<Vec<u8>>,
    #[cfg(feature = "rustls")]
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    #[cfg(feature = "rustls")]
    pub(crate) config: Option<tokio_rustls::rustls::ClientConfig>,
}

#[cfg(feature = "rustls")]
pub(crate) use with_rustls::{connector, diagnose, secure, Connector};

#[cfg(feature = "rustls")]
mod with_rustls {
    use std::io;
    use std::sync::Arc;

    use tokio::net::TcpStream;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use tokio_rustls::rustls::{crypto, ClientConfig, Error as TlsError, RootCertStore};
    use tokio_rustls::TlsConnector;

    use super::TlsOptions;
    use crate::wire::ALPN;

    pub(crate) type Connector = TlsConnector;

    /// The connector for these options; `None` for plaintext.
    pub(crate) fn connector(options: &TlsOptions) -> Result<Option<Connector>, String> {
        if !options.enabled {
            return Ok(None);
        }
        let mut config = match &options.config {
            Some(config) => config.clone(),
            None => configure(options)?,
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Some(TlsConnector::from(Arc::new(config))))
    }

    fn configure(options: &TlsOptions) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots(options)?);
        let Some((cert, key)) = &options.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let unusable = |e: &dyn std::fmt::Display| format!("the client certificate cannot be used: {e}");
        let chain =
            CertificateDer::pem_slice_iter(cert).collect::<Result<Vec<_>, _>>().map_err(|e| unusable(&e))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| unusable(&e))?;
        builder.with_client_auth_cert(chain, key).map_err(|e| unusable(&e))
    }

    fn roots(options: &TlsOptions) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let Some(pem) = &options.ca else {
            system_roots(&mut roots);
            return match roots.is_empty() {
                true => Err(
                    "no trusted certificates were found; give one with with_tls_ca_cert, or turn a roots \
                             feature of the crate on"
                        .to_owned(),
                ),
                false => Ok(roots),
            };
        };
        for found in CertificateDer::pem_slice_iter(pem) {
            let unusable = |e: &dyn std::fmt::Display| format!("the CA certificate cannot be used: {e}");
            roots.add(found.map_err(|e| unusable(&e))?).map_err(|e| unusable(&e))?;
        }
        match roots.is_empty() {
            true => Err("the CA certificate is not PEM text with a certificate in it".to_owned()),
            false => Ok(roots),
        }
    }

    #[allow(unused_variables)]
    fn system_roots(roots: &mut RootCertStore) {
        #[cfg(feature = "rustls-native-roots")]
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        #[cfg(feature = "rustls-webpki-roots")]
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }

    /// Speaks TLS. The server's name is always the host that was dialled, also after a redirect.
    pub(crate) async fn secure(
        tls: &Connector,
        host: &str,
        tcp: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        tls.connect(name, tcp).await
    }

    /// What a TLS failure means for people, and whether it lasts.
    pub(crate) fn diagnose(error: &io::Error) -> Option<String> {
        let tls = error.get_ref()?.downcast_ref::<TlsError>()?;
        Some(match tls {
            TlsError::InvalidCertificate(_) => {
                format!("TLS: the broker's certificate cannot be verified: {tls}")
            }
            TlsError::InvalidMessage(_) => {
                "TLS: the broker does not speak TLS on this port; leave TLS out, or use its TLS port"
                    .to_owned()
            }
            TlsError::AlertReceived(_) => format!("TLS: the broker refused the connection: {tls}"),
            _ => format!("TLS: {tls}"),
        })
    }
}

#[cfg(not(feature = "rustls"))]
pub(crate) use without_rustls::{connector, diagnose, secure, Connector};

#[cfg(not(feature = "rustls"))]
mod without_rustls {
    use std::io;

    use tokio::net::TcpStream;

    use super::TlsOptions;

    /// There is none without the feature.
    #[derive(Clone)]
    pub(crate) enum Connector {}

    pub(crate) fn connector(options: &TlsOptions) -> Result<Option<Connector>, String> {
        match options.enabled {
            true => Err("TLS was asked for; turn the crate's feature `rustls` on".to_owned()),
            false => Ok(None),
        }
    }

    pub(crate) async fn secure(tls: &Connector, _host: &str, _tcp: TcpStream) -> io::Result<TcpStream> {
        match *tls {}
    }

    pub(crate) fn diagnose(_error: &io::Error) -> Option<String> {
        None
    }
}
