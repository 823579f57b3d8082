//! Describes the keys and values that the engine's user stores.

/// Describes the keys and values that a database holds.
///
/// All methods except the version have a default. A layout must never change its answers about a key that is in use.
pub trait Layout: Send + Sync + 'static {
    /// The version of this layout. A database or a backup of a later version is refused before anything in it changes.
    fn format(&self) -> u32;

    /// Whether the tree compresses the values under this key. That pays off for text of some hundred bytes or more.
    fn compresses(&self, key: &[u8]) -> bool {
        let _ = key;
        false
    }

    /// The order in which a batch's writes are applied to the tree: lower numbers first.
    ///
    /// A scan has no snapshot, so a scan that began before a batch may see part of it. An index entry that is written after
    /// its record and removed before it never points to nothing.
    fn apply_order(&self, key: &[u8], is_put: bool) -> u8 {
        let _ = (key, is_put);
        0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::Layout;

    /// The simplest layout. It compresses values whose keys begin with `z`.
    pub(crate) struct Plain;

    impl Plain {
        pub(crate) fn shared() -> Arc<dyn Layout> {
            Arc::new(Self)
        }
    }

    impl Layout for Plain {
        fn format(&self) -> u32 {
            1
        }

        fn compresses(&self, key: &[u8]) -> bool {
            key.starts_with(b"z")
        }
    }

    #[test]
    fn by_default_nothing_is_compressed_and_writes_are_applied_in_key_order() {
        struct Plainest;
        impl Layout for Plainest {
            fn format(&self) -> u32 {
                1
            }
        }
        for is_put in [false, true] {
            assert_eq!((Plainest.compresses(b"key"), Plainest.apply_order(b"key", is_put)), (false, 0));
        }
    }
}
