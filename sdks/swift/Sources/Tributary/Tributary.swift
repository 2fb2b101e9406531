import Foundation

/// Attributes the installation and its purchases to an affiliate. No call throws, waits for the network or blocks the main
/// thread. Calls before `start` are kept and made by it.
public enum Tributary {
    /// The SDK of this process. The tests replace it to end the process.
    static let current = Locked(Sdk(platform: Platform()))

    /// Starts the SDK. Returns false without a key or a base address.
    ///
    /// - Parameter apiKey: The SDK key of the app (`pk_live_…`). The default is the value of `TributaryAPIKey` in
    ///   `Info.plist`.
    @discardableResult
    public static func start(apiKey: String? = nil, options: TributaryOptions = .init()) -> Bool {
        sdk.start(apiKey: apiKey, options: options)
    }

    /// Binds the app's user id to the attribution. Returns true once it is bound.
    ///
    /// - Parameters:
    ///   - userId: The id that the billing provider reports, character for character.
    ///   - signature: The signature of the app's server, if the app verifies user ids.
    @discardableResult
    public static func identify(userId: String, signature: String? = nil) async -> Bool {
        await sdk.make(.identify(userId: userId, signature: signature))
    }

    /// Binds the app's user id to the attribution. The completion receives true once it is bound.
    public static func identify(
        userId: String, signature: String? = nil, completion: @escaping @MainActor @Sendable (Bool) -> Void = { _ in }
    ) {
        sdk.make(.identify(userId: userId, signature: signature), completion: completion)
    }

    /// Takes the referral of an address (`claim_token`, `via`). Returns true if the service accepted it.
    @discardableResult
    public static func attribute(url: URL) async -> Bool {
        await sdk.make(.attribute(Referral(address: url.absoluteString)))
    }

    /// Takes the referral of an address (`claim_token`, `via`). The completion receives true if the service accepted it.
    public static func attribute(url: URL, completion: @escaping @MainActor @Sendable (Bool) -> Void = { _ in }) {
        sdk.make(.attribute(Referral(address: url.absoluteString)), completion: completion)
    }

    /// Takes a code that a user entered. Returns true if the service knows the code.
    @discardableResult
    public static func applyCode(_ code: String) async -> Bool {
        await sdk.make(.applyCode(Referral(claimToken: nil, code: code)))
    }

    /// Takes a code that a user entered. The completion receives true if the service knows the code.
    public static func applyCode(
        _ code: String, completion: @escaping @MainActor @Sendable (Bool) -> Void = { _ in }
    ) {
        sdk.make(.applyCode(Referral(claimToken: nil, code: code)), completion: completion)
    }

    /// Returns the affiliate, or nil if there is none or `start` was not called.
    public static func attributedAffiliateId() -> String? {
        sdk.affiliateId
    }

    /// Returns the device id, or nil without a consent or before `start`.
    public static func deviceId() -> String? {
        sdk.client?.deviceId
    }

    /// Passes the app's user id, and the creator's code as the attribute `tributary_code`, to the billing SDKs of the app. One
    /// that fails or does not answer within ten seconds does not stop the others.
    ///
    /// - Parameter code: Is not passed on if it has `@` or spaces, or more than 64 characters.
    @discardableResult
    public static func linkPurchases(
        userId: String, to sdks: [TributaryBillingSdk], code: String? = nil
    ) async -> TributaryLinkResult {
        await sdk.linker.link(userId, to: sdks, code: code)
    }

    /// Returns what the SDK knows, for a developer who looks for an error; nil before `start`. Changes and sends nothing.
    public static func debugState() -> TributaryDebugState? {
        sdk.client?.debugState
    }

    /// Deletes everything that is stored. An opt-out survives.
    public static func reset() {
        sdk.make(.reset) { _ in }
    }

    /// The consent. False before the start of a new installation means that it is undecided: nothing is sent, and referrals
    /// wait in memory for `setEnabled(true)`. False after the start is a refusal, which deletes everything.
    public static func setEnabled(_ enabled: Bool) {
        sdk.make(.setEnabled(enabled)) { _ in }
    }

    private static var sdk: Sdk { current.withLock { $0 } }
}

private let maxCalls = 20

/// The SDK of one process.
final class Sdk: Sendable {
    private struct Shared: Sendable {
        var client: Client?
        /// The calls before the start.
        var calls: [Call] = []
        /// The last `setEnabled` before the start.
        var consent: Call?
    }

    private let platform: Platform
    private let shared = Locked(Shared())

    let linker: PurchaseLinker

    init(platform: Platform) {
        self.platform = platform
        linker = PurchaseLinker(platform: platform)
    }

    var client: Client? { shared.withLock { $0.client } }

    var affiliateId: String? { client?.affiliateId }

    func start(apiKey: String?, options: TributaryOptions) -> Bool {
        if let client {
            client.start([])()
            return true
        }
        let log = Log(options)
        guard let target = Target(apiKey: apiKey, apiBaseUrl: options.apiBaseUrl, platform: platform, log: log) else {
            return false
        }
        let created = Client(platform: platform, target: target, options: options, log: log)
        let (isFirst, callbacks) = shared.withLock { shared in
            // Another thread may have started it in the meantime.
            let client = shared.client ?? created
            shared.client = client
            defer {
                shared.calls = []
                shared.consent = nil
            }
            return (client === created, client.start([shared.consent].compactMap { $0 } + shared.calls))
        }
        callbacks()
        if isFirst { platform.observe { created.retry() } }
        return true
    }

    func make(_ call: Call) async -> Bool {
        await withCheckedContinuation { continuation in
            make(call) { continuation.resume(returning: $0) }
        }
    }

    func make(_ call: Call, completion: @escaping @MainActor @Sendable (Bool) -> Void) {
        make(call) { result in
            Task { @MainActor in completion(result) }
        }
    }

    /// Keeps a call until the start. What concerns deletion and consent is always kept.
    private func keep(_ call: Call, _ shared: inout Shared) {
        switch call {
        case .setEnabled: shared.consent = call
        // It deletes the calls before it, too, so that there is always room for it.
        case .reset: shared.calls = [call]
        default: if shared.calls.count < maxCalls { shared.calls.append(call) }
        }
    }

    /// Makes a call now, or keeps it until the start.
    private func make(_ call: Call, then completion: @escaping @Sendable (Bool) -> Void) {
        let client = shared.withLock { shared in
            if shared.client == nil { keep(call, &shared) }
            return shared.client
        }
        guard let client else { return completion(false) }
        client.make(call, completion: completion)
    }
}
