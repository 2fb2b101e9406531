import Foundation

/// What the SDK knows, for a developer who looks for the reason why something is not attributed. SPEC.md defines the fields.
/// There is no personal data in it. Its description is JSON.
public struct TributaryDebugState: Encodable, Equatable, Sendable, CustomStringConvertible {
    public enum Consent: String, Encodable, Sendable {
        case granted, undecided, refused
    }

    public enum Attribution: String, Encodable, Sendable {
        case attributed
        /// There is no affiliate, and something is queued.
        case unknown
        case none
    }

    /// What a request is for.
    public enum Kind: String, Encodable, Sendable {
        case token, code, deferred, user
    }

    public enum Outcome: String, Encodable, Sendable {
        case accepted, refused
        /// The key or the path is wrong.
        case stopped
        /// No answer of the service.
        case failed
    }

    /// A request to be sent.
    public struct Queued: Encodable, Equatable, Sendable {
        public let kind: Kind
        /// How long it has waited; nil for `deferred`.
        public let ageSeconds: Int?

        public func encode(to encoder: any Encoder) throws {
            var fields = encoder.container(keyedBy: CodingKeys.self)
            try fields.encode(kind, forKey: .kind)
            // Null if there is none.
            try fields.encode(ageSeconds, forKey: .ageSeconds)
        }

        private enum CodingKeys: CodingKey {
            case kind, ageSeconds
        }
    }

    /// An answer to a request.
    public struct Answered: Encodable, Equatable, Sendable {
        public let kind: Kind
        public let outcome: Outcome
        /// The HTTP status, or nil if no response came.
        public let status: Int?
        /// The code of the error, or nil.
        public let code: String?

        public func encode(to encoder: any Encoder) throws {
            var fields = encoder.container(keyedBy: CodingKeys.self)
            try fields.encode(kind, forKey: .kind)
            try fields.encode(outcome, forKey: .outcome)
            try fields.encode(status, forKey: .status)
            try fields.encode(code, forKey: .code)
        }

        private enum CodingKeys: CodingKey {
            case kind, outcome, status, code
        }
    }

    /// The name and version of the SDK.
    public let sdk: String
    /// The base address, with `#test` if the key is a test key.
    public let host: String
    public let consent: Consent
    /// The first eight characters of the device id, or nil without a consent.
    public let deviceId: String?
    /// False if the storage failed: the state is in memory only.
    public let isStored: Bool
    public let attribution: Attribution
    /// Whether a user was identified.
    public let hasUser: Bool
    /// What is to be sent, in the order of sending.
    public let queued: [Queued]
    /// The last ten answers of this process, the oldest first.
    public let answers: [Answered]
    /// When what is queued is tried again, or nil if nothing is planned or a request is under way.
    public let nextTryInSeconds: Int?

    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(sdk, forKey: .sdk)
        try fields.encode(host, forKey: .host)
        try fields.encode(consent, forKey: .consent)
        try fields.encode(deviceId, forKey: .deviceId)
        try fields.encode(isStored, forKey: .isStored)
        try fields.encode(attribution, forKey: .attribution)
        try fields.encode(hasUser, forKey: .hasUser)
        try fields.encode(queued, forKey: .queued)
        try fields.encode(answers, forKey: .answers)
        try fields.encode(nextTryInSeconds, forKey: .nextTryInSeconds)
    }

    private enum CodingKeys: CodingKey {
        case sdk, host, consent, deviceId, isStored, attribution, hasUser, queued, answers, nextTryInSeconds
    }

    public var description: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding texts, whole numbers and flags can't fail.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// Returns the code of an error as it may be shown, or nil if it could be anything else.
func publicCode(_ code: String?) -> String? {
    guard let code, (1...64).contains(code.utf8.count) else { return nil }
    return code.utf8.allSatisfy { $0 == UInt8(ascii: "_") || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 } ? code : nil
}
