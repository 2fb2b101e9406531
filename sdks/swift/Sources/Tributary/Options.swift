import Foundation

#if canImport(os)
    import os
#endif

/// The options of `Tributary.start`.
public struct TributaryOptions: Sendable {
    /// The base address of the service, such as `https://tributary.example.com`. The default is the value of
    /// `TributaryAPIBaseURL` in `Info.plist`.
    public var apiBaseUrl: String?
    /// Where the state is kept. The default is a file in Application Support.
    public var storage: (any TributaryStorage)?
    /// Whether a first open without a referral is matched by the address of the device.
    public var deferredMatch: Bool
    /// Whether to log each answer.
    public var debug: Bool
    /// Takes the log lines instead of the system log. Called on any thread.
    public var logger: (@Sendable (String) -> Void)?
    /// Called when the device is attributed to an affiliate.
    public var onAttribution: (@MainActor @Sendable (_ affiliateId: String) -> Void)?

    public init(
        apiBaseUrl: String? = nil,
        storage: (any TributaryStorage)? = nil,
        deferredMatch: Bool = true,
        debug: Bool = false,
        logger: (@Sendable (String) -> Void)? = nil,
        onAttribution: (@MainActor @Sendable (_ affiliateId: String) -> Void)? = nil
    ) {
        self.apiBaseUrl = apiBaseUrl
        self.storage = storage
        self.deferredMatch = deferredMatch
        self.debug = debug
        self.logger = logger
        self.onAttribution = onAttribution
    }
}

/// Writes log lines.
struct Log: Sendable {
    private let write: @Sendable (String) -> Void
    private let isDebug: Bool

    init(_ options: TributaryOptions) {
        write = options.logger ?? writeToSystemLog
        isDebug = options.debug
    }

    /// Writes a line that tells the developer what to change.
    func warn(_ line: String) {
        write("[tributary] \(line)")
    }

    func debug(_ line: String) {
        if isDebug { warn(line) }
    }
}

@Sendable private func writeToSystemLog(_ line: String) {
    #if canImport(os)
        Logger(subsystem: "dev.tributary", category: "sdk").notice("\(line, privacy: .public)")
    #else
        FileHandle.standardError.write(Data("\(line)\n".utf8))
    #endif
}

/// Where requests go.
struct Target: Sendable {
    let apiKey: String
    /// The base address, without a slash at its end.
    let host: String
    let install: URL
    let identify: URL

    /// What the state belongs to. A live key reports everything anew: what a test key reported never earns.
    var owner: String { apiKey.hasPrefix("pk_test_") ? "\(host)#test" : host }

    /// Returns nil with a log line if the key or the base address is missing.
    init?(apiKey: String?, apiBaseUrl: String?, platform: Platform, log: Log) {
        let given = [apiBaseUrl, platform.info("TributaryAPIBaseURL"), platform.host]
        var host = given.compactMap { $0?.trimmingCharacters(in: .whitespaces) }.first { !$0.isEmpty } ?? ""
        while host.hasSuffix("/") { host.removeLast() }
        guard host.hasPrefix("https://") || host.hasPrefix("http://"),
            let install = URL(string: "\(host)/sdk/install"), install.host?.isEmpty == false,
            let identify = URL(string: "\(host)/sdk/identify")
        else {
            log.warn(
                "No base address: set TributaryAPIBaseURL in Info.plist, or apiBaseUrl, to the http or https address of your service. Nothing is sent."
            )
            return nil
        }
        let key = [apiKey, platform.info("TributaryAPIKey")].compactMap { $0 }.first { !$0.isEmpty }
        guard let key else {
            log.warn(
                "No SDK key: set TributaryAPIKey in Info.plist, or apiKey, to the key of your app (pk_live_…). Nothing is sent."
            )
            return nil
        }
        self.apiKey = key
        self.host = host
        self.install = install
        self.identify = identify
    }
}
