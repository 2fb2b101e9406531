/// What this release is built with. A test compares it with `sdks/VERSION` and `sdks/HOST`.
enum Release {
    static let version = "0.1.0"
    /// The base address of the service; empty if every app sets its own.
    static let host = ""
}
