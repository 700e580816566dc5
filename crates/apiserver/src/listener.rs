//! Sockets, TLS and kubeconfig. (Being written.)
