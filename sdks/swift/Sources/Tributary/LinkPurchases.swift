import Foundation

private let attribute = "tributary_code"
private let maxUserIdLength = 512
private let maxCodeLength = 64
private let linkTimeoutMs = 10_000

/// A billing SDK of the app, which the app has configured. The README has the lines for each provider.
public struct TributaryBillingSdk: Sendable {
    public typealias Identify = @MainActor @Sendable (_ userId: String) async throws -> Void
    public typealias SetAttribute = @MainActor @Sendable (_ name: String, _ value: String) async throws -> Void

    /// How `TributaryLinkResult` names it.
    public let name: String
    let maxCodeLength: Int
    let identify: Identify
    let setAttribute: SetAttribute

    /// - Parameters:
    ///   - maxCodeLength: The longest value that the billing SDK takes.
    ///   - identify: Passes on the user id. Throws if the billing SDK refuses it.
    ///   - setAttribute: Sets an attribute of the current user.
    public init(
        name: String, maxCodeLength: Int = 64, identify: @escaping Identify, setAttribute: @escaping SetAttribute
    ) {
        self.name = name
        self.maxCodeLength = maxCodeLength
        self.identify = identify
        self.setAttribute = setAttribute
    }
}

/// The names of the billing SDKs that accepted the user id, and of those that took the code.
public struct TributaryLinkResult: Equatable, Sendable {
    public internal(set) var userId: [String] = []
    public internal(set) var code: [String] = []
}

/// Passes user ids and codes on to billing SDKs. Nothing throws.
final class PurchaseLinker: Sendable {
    private let platform: Platform
    private let calls = Locked(0)

    init(platform: Platform) {
        self.platform = platform
    }

    /// Returns what was accepted when every billing SDK has answered, or after the time-out.
    func link(_ userId: String, to sdks: [TributaryBillingSdk], code: String?) async -> TributaryLinkResult {
        let call = calls.withLock { calls in
            calls += 1
            return calls
        }
        let accepted = Locked(TributaryLinkResult())
        guard !sdks.isEmpty, (1...maxUserIdLength).contains(userId.utf16.count) else { return .init() }
        await withCheckedContinuation { continuation in
            let waiting = Locked<CheckedContinuation<Void, Never>?>(continuation)
            let end = { @Sendable in
                let continuation = waiting.withLock { waiting in
                    defer { waiting = nil }
                    return waiting
                }
                continuation?.resume()
            }
            let cancel = platform.after(linkTimeoutMs, end)
            Task {
                await withTaskGroup(of: Void.self) { group in
                    for sdk in sdks {
                        group.addTask { await self.link(userId, to: sdk, code: code, call: call, accepted) }
                    }
                }
                cancel()
                end()
            }
        }
        return accepted.withLock { $0 }
    }

    private func link(
        _ userId: String, to sdk: TributaryBillingSdk, code: String?, call: Int, _ accepted: Locked<TributaryLinkResult>
    ) async {
        do {
            try await sdk.identify(userId)
            accepted.withLock { $0.userId.append(sdk.name) }
            // Of several calls at once only the last sets its code: the attribute is that of the current user.
            guard let code, isPassedOn(code, maxLength: sdk.maxCodeLength), calls.withLock({ $0 == call }) else { return }
            try await sdk.setAttribute(attribute, code)
            accepted.withLock { $0.code.append(sdk.name) }
        } catch {
            // The result names who accepted.
        }
    }
}

/// Returns whether a code is neither an e-mail address nor a name, and short enough.
private func isPassedOn(_ code: String, maxLength: Int) -> Bool {
    guard !code.isEmpty, code.utf16.count <= min(maxLength, maxCodeLength) else { return false }
    return code.unicodeScalars.allSatisfy {
        $0 != "@" && !$0.properties.isWhitespace && $0.properties.generalCategory != .control
    }
}
