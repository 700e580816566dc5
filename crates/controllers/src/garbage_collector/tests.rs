//! Tables for the pure parts.
