import Foundation

/// A referral that was not answered yet.
struct Touch: Codable, Sendable {
    let claimToken: String?
    let code: String?
    /// When it came, epoch ms.
    var at: Int
    var isCorrected: Bool?
    /// True if the service refused the time. The code is then sent without one.
    var isUntimed: Bool?

    init(_ referral: Referral, at: Int) {
        claimToken = referral.claimToken
        code = referral.code
        self.at = at
    }

    var identity: String { touchIdentity(claimToken, code) }
}

/// Returns what identifies a touch. Codes are compared without case.
func touchIdentity(_ claimToken: String?, _ code: String?) -> String {
    "\(claimToken ?? "") \((code ?? "").lowercased())"
}

struct User: Codable, Sendable {
    enum Status: String, Codable {
        case pending
        /// The service knows the pair; it is sent again after an install is attributed.
        case unattributed
        case bound
    }

    let id: String
    /// The signature of the app's server, if the app verifies user ids.
    let signature: String?
    /// When the user was identified, epoch ms.
    var at: Int
    var status: Status
    var isCorrected: Bool?
}

struct AnsweredTouch: Codable, Sendable {
    let touch: String
    let isAccepted: Bool
}

/// How many touches and how many users wait at most.
let maxWaiting = 5
private let maxAnswered = 10
/// No clock that shows an earlier time is right: this SDK is younger.
private let earliestMs = 1_735_000_000_000
/// How long after the first open a deferred match is asked for, and how long a `Retry-After` may be, ms.
let oneDayMs = 86_400_000
let maxAgeMs = 90 * oneDayMs

/// Everything that the SDK stores. All SDKs store the same document.
struct State: Codable, Sendable {
    var version = 1
    /// The base address that the state belongs to, with `#test` if the key is a test key.
    let host: String
    /// False after an opt-out, and while the consent is undecided. Everything else that is stored is then empty.
    var enabled: Bool
    /// True if the person was not asked yet. Referrals and users then wait in memory.
    var isUndecided: Bool?
    var deviceId: String
    /// The first start on this device, epoch ms. Changes only if the clock of the device was wrong.
    var firstOpenAt: Int
    var isFirstOpenCorrected: Bool?
    /// Stored as null if there is none.
    @Nullable var affiliateId: String? = nil
    var touches: [Touch] = []
    var users: [User] = []
    /// The latest answered touches.
    var answered: [AnsweredTouch] = []
    var isDeferredAnswered = false
    /// No request before this instant (`Retry-After`). Epoch ms.
    var notBefore = 0
    /// How long that pause was at its beginning, ms. A state of an earlier build has none.
    var pauseMs: Int?

    init(host: String, deviceId: String, now: Int, enabled: Bool) {
        self.host = host
        self.deviceId = deviceId
        self.enabled = enabled
        firstOpenAt = now
    }

    /// True if the person refused.
    var isRefused: Bool { !enabled && isUndecided != true }

    var text: String {
        var stored = self
        if isUndecided == true {
            stored.deviceId = ""
            stored.touches = []
            stored.users = []
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding texts, whole numbers and flags can't fail.
        return (try? encoder.encode(stored)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Marks a touch as answered.
    mutating func answer(_ touch: Touch, isAccepted: Bool) {
        let identity = touch.identity
        touches.removeAll { $0.identity.isSame(as: identity) }
        answered.removeAll { $0.touch.isSame(as: identity) }
        answered = (answered + [AnsweredTouch(touch: identity, isAccepted: isAccepted)]).suffix(maxAnswered)
    }

    /// Replaces times of a clock that was wrong and was set right meanwhile, and removes what has waited too long. Returns
    /// whether a time was replaced. Corrected times are those of the service.
    mutating func settleTimes(now: Int) -> Bool {
        var isChanged = false
        func settle(_ at: inout Int, _ isCorrected: Bool?) {
            if isCorrected == true || (at <= now && (at >= earliestMs || now < earliestMs)) { return }
            at = now
            isChanged = true
        }
        settle(&firstOpenAt, isFirstOpenCorrected)
        for index in touches.indices { settle(&touches[index].at, touches[index].isCorrected) }
        for index in users.indices { settle(&users[index].at, users[index].isCorrected) }
        touches.removeAll { now - $0.at > maxAgeMs }
        users.removeAll { $0.status != .bound && now - $0.at > maxAgeMs }
        return isChanged
    }
}

/// Returns whether the app was installed more than a day before the SDK's first start. The update that added the SDK makes
/// nobody a new user, whom a click of today may have brought.
func isExistingUser(installedAt: Int?, firstOpenAt: Int) -> Bool {
    installedAt.map { firstOpenAt - $0 > oneDayMs } ?? false
}

/// What the storage holds for a host.
enum Stored {
    case state(State)
    /// An opt-out counts for every host.
    case optOut(isDeferredAnswered: Bool)
    /// The person was not asked yet, which counts for every host, too.
    case undecided(isDeferredAnswered: Bool, firstOpenAt: Int?)
    /// Nothing, something damaged, or the state of another host.
    case nothing

    init(_ text: String?, host: String) {
        struct Consent: Decodable {
            let enabled: Bool
            let isDeferredAnswered: Bool?
            let isUndecided: Bool?
            let firstOpenAt: Int?
        }
        let data = Data((text ?? "").utf8)
        let decoder = JSONDecoder()
        if let consent = try? decoder.decode(Consent.self, from: data), !consent.enabled {
            let isDeferredAnswered = consent.isDeferredAnswered ?? false
            self =
                consent.isUndecided == true
                ? .undecided(isDeferredAnswered: isDeferredAnswered, firstOpenAt: consent.firstOpenAt)
                : .optOut(isDeferredAnswered: isDeferredAnswered)
        } else if let state = try? decoder.decode(State.self, from: data), state.isWhole, state.host.isSame(as: host) {
            self = .state(state)
        } else {
            self = .nothing
        }
    }
}

extension State {
    /// Times of a damaged state could overflow, which ends the process.
    fileprivate var isWhole: Bool {
        let range = -(1 << 53)...(1 << 53)
        let times = [firstOpenAt, notBefore] + touches.map(\.at) + users.map(\.at)
        return version == 1 && !deviceId.isEmpty && times.allSatisfy(range.contains)
    }
}

extension String {
    /// Compares exactly. `==` takes a letter with a combining accent for the accented letter, which is another user id.
    func isSame(as other: String) -> Bool {
        utf8.elementsEqual(other.utf8)
    }
}

/// A text that is encoded as null if there is none.
@propertyWrapper
struct Nullable: Codable, Sendable {
    var wrappedValue: String?

    init(wrappedValue: String?) {
        self.wrappedValue = wrappedValue
    }

    init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(String?.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
