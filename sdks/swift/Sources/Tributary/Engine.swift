import Foundation

/// A call of the app that changes something.
enum Call: Sendable {
    case identify(userId: String, signature: String?)
    /// The referral of an address; nil if the address has none.
    case attribute(Referral?)
    /// The code that a user entered; nil if no code has its form.
    case applyCode(Referral?)
    case reset
    case setEnabled(Bool)
}

/// What the result of a call depends on.
enum Awaited: Sendable {
    case result(Bool)
    /// The touch with this identity is answered.
    case touch(String)
    case user(id: String)
}

/// What the client does for the engine, in this order.
enum Effect: Sendable {
    /// Stores the text; nil removes what is stored.
    case store(String?)
    /// Sends the request after everything before it is stored.
    case send(id: Int, RequestBody, isIdentify: Bool)
    case cancelRequest
    /// Calls `timerFired` after this many ms. Replaces an earlier timer.
    case startTimer(id: Int, ms: Int)
    case cancelTimer
    case attributed(affiliateId: String)
    case warn(String)
    case debug(String)
}

private let maxTries = 6
private let longestBackoffMs = 60_000
private let deferredDelayMs = 2_000
private let maxUserIdLength = 512

/// Decides what is sent and stored, and when. The rules are those of SPEC.md. It does nothing itself: the client carries
/// out the effects.
struct Engine: Sendable {
    /// What a request is for.
    private enum Subject {
        case touch(Touch)
        case deferredMatch
        case user(User)
    }

    private enum Phase {
        case idle
        /// Waits for the deferred match of this start.
        case sleeping
        case sending(id: Int, Subject)
    }

    private enum Step {
        case nothing
        case sleep(ms: Int)
        case send(Subject)
    }

    private let platform: Platform
    /// The base address of the state, with `#test` if the key is a test key.
    private let owner: String
    private let startedAt: Int
    private var state: State
    private let deferredMatch: Bool
    /// Whether this process may ask for the deferred match: not after a reset or an opt-out.
    private var mayAsk = true
    private var isStorageUsable: Bool
    private var isMisconfigured = false
    private var failures = 0
    private var isHeld = false
    private var phase = Phase.idle
    private var timer: Int?
    private var lastId = 0
    private var effects: [Effect] = []

    /// Creates the engine from the stored text; nil if nothing is stored or it could not be read (`isStorageUsable`).
    init(platform: Platform, owner: String, storedText: String?, isStorageUsable: Bool, deferredMatch: Bool) {
        self.platform = platform
        self.owner = owner
        self.deferredMatch = deferredMatch
        self.isStorageUsable = isStorageUsable
        startedAt = platform.now()
        switch Stored(storedText, host: owner) {
        case .state(let stored): state = stored
        case .optOut(let isDeferredAnswered):
            state = Engine.emptyState(platform, owner, enabled: false)
            state.isDeferredAnswered = isDeferredAnswered
        case .nothing: state = Engine.emptyState(platform, owner, enabled: true)
        }
    }

    var affiliateId: String? { state.affiliateId }

    /// Returns the result of a call, or nil as long as it is not known.
    func result(of awaited: Awaited) -> Bool? {
        switch awaited {
        case .result(let result):
            return result
        case .touch(let identity):
            if state.touches.contains(where: { $0.identity.isSame(as: identity) }) { return whileRunning }
            return state.answered.first { $0.touch.isSame(as: identity) }?.isAccepted ?? false
        case .user(let id):
            let status = state.users.first { $0.id.isSame(as: id) }?.status
            return status == .pending ? whileRunning : status == .bound
        }
    }

    private var whileRunning: Bool? {
        if case .idle = phase { return false }
        return nil
    }

    /// Returns what the client has to do now.
    mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    /// Makes the calls that came before the start, and begins to deliver.
    mutating func start(_ calls: [Call]) {
        if state.enabled { save() }
        isMisconfigured = false
        // Nothing is sent until every call is queued: touches go first, and an opt-out holds for this start.
        isHeld = true
        for call in calls { _ = make(call) }
        isHeld = false
        retry()
    }

    /// Tries again at once: the device is connected again, or the app is back in the foreground.
    mutating func retry() {
        failures = 0
        flush()
    }

    mutating func make(_ call: Call) -> Awaited {
        switch call {
        case .identify(let userId, let signature):
            return identify(userId, signature)
        case .attribute(let referral):
            return refer(referral, isEntered: false)
        case .applyCode(let referral):
            return refer(referral, isEntered: true)
        case .reset:
            // The next person on this device has not come from a link of this one.
            replaceState(enabled: state.enabled, isDeferredAnswered: true)
        case .setEnabled(let enabled):
            if state.enabled != enabled { replaceState(enabled: enabled, isDeferredAnswered: state.isDeferredAnswered) }
        }
        return .result(true)
    }

    /// The state lives in memory only from now on.
    mutating func storageFailed() {
        isStorageUsable = false
    }

    mutating func timerFired(id: Int) {
        guard timer == id else { return }
        timer = nil
        if case .sleeping = phase { phase = .idle }
        step()
    }

    mutating func finished(requestId: Int, _ answer: Answer) {
        // An answer after a reset counts for nothing.
        guard case .sending(requestId, let subject) = phase else { return }
        phase = .idle
        switch answer {
        case .misconfigured(let status):
            isMisconfigured = true
            effects.append(
                .warn(
                    "The service answered \(status): check apiKey and apiBaseUrl. Nothing is sent until the next start."
                ))
        case .failed(let reason, let afterMs):
            effects.append(.debug("No answer: \(reason)."))
            failures += 1
            if afterMs > 0 {
                state.notBefore = platform.now() + afterMs
                save()
            }
            let backoff = min(1000 << failures, longestBackoffMs)
            let varied = Int(Double(backoff) * (0.5 + platform.random() / 2))
            if failures < maxTries { startTimer(max(varied, afterMs)) }
        case .verdict(let verdict):
            effects.append(.debug("Answer \(verdict.status): \(verdict.body.code ?? verdict.body.affiliateId ?? "none")."))
            failures = 0
            switch subject {
            case .touch(let touch): apply(verdict, to: touch)
            case .deferredMatch: apply(verdict, to: nil)
            case .user(let user): apply(verdict, toUser: user.id)
            }
            save()
            step()
        }
    }

    private static func emptyState(_ platform: Platform, _ owner: String, enabled: Bool) -> State {
        let deviceId = enabled ? platform.newId() : ""
        return State(host: owner, deviceId: deviceId, now: platform.now(), enabled: enabled)
    }

    private mutating func save() {
        effects.append(.store(state.text))
    }

    /// Deletes everything but the consent and whether the deferred match is done.
    private mutating func replaceState(enabled: Bool, isDeferredAnswered: Bool) {
        mayAsk = false
        if case .sending = phase { effects.append(.cancelRequest) }
        phase = .idle
        cancelTimer()
        failures = 0
        state = Engine.emptyState(platform, owner, enabled: enabled)
        state.isDeferredAnswered = isDeferredAnswered
        effects.append(.store(enabled && !deferredMatch ? nil : state.text))
    }

    private mutating func identify(_ userId: String, _ signature: String?) -> Awaited {
        guard (1...maxUserIdLength).contains(userId.utf16.count) else {
            effects.append(.warn("identify: the user id must be a text of 1 to 512 characters."))
            return .result(false)
        }
        guard state.enabled else { return .result(false) }
        let known = state.users.first { $0.id.isSame(as: userId) }
        if known?.status == .bound { return .result(true) }
        let isNew = known.map { $0.signature != signature } ?? true
        if !isNew, known?.status == .unattributed { return .result(false) }
        if isNew {
            let user = User(id: userId, signature: signature, at: platform.now(), status: .pending)
            state.users = (state.users.filter { !$0.id.isSame(as: userId) } + [user]).suffix(maxWaiting)
            save()
        }
        deliver(isNew: isNew)
        return .user(id: userId)
    }

    /// Delivers a referral. A referral that was refused is asked for again only if a user enters it.
    private mutating func refer(_ referral: Referral?, isEntered: Bool) -> Awaited {
        guard let referral, state.enabled else { return .result(false) }
        let touch = Touch(referral, at: platform.now())
        let identity = touch.identity
        if isEntered { state.answered.removeAll { $0.touch.isSame(as: identity) && !$0.isAccepted } }
        let isKnown =
            state.touches.contains { $0.identity.isSame(as: identity) }
            || state.answered.contains { $0.touch.isSame(as: identity) }
        if !isKnown {
            state.touches = (state.touches + [touch]).suffix(maxWaiting)
            save()
        }
        deliver(isNew: !isKnown)
        return .touch(identity)
    }

    /// Delivers what a call added. A call that added nothing does not shorten the wait after a failure.
    private mutating func deliver(isNew: Bool) {
        if case .idle = phase, timer != nil, !isNew { return }
        flush()
    }

    private mutating func flush() {
        cancelTimer()
        if case .sleeping = phase { phase = .idle }
        step()
    }

    private mutating func cancelTimer() {
        if timer != nil { effects.append(.cancelTimer) }
        timer = nil
    }

    private mutating func startTimer(_ ms: Int) {
        timer = newId()
        effects.append(.startTimer(id: lastId, ms: ms))
    }

    private mutating func newId() -> Int {
        lastId += 1
        return lastId
    }

    /// Sends the next request or waits for it, unless one is being sent.
    private mutating func step() {
        guard case .idle = phase, !isHeld else { return }
        switch nextStep() {
        case .nothing:
            break
        case .sleep(let ms):
            phase = .sleeping
            startTimer(ms)
        case .send(let subject):
            phase = .sending(id: newId(), subject)
            let isIdentify = if case .user = subject { true } else { false }
            effects.append(.send(id: lastId, body(of: subject), isIdentify: isIdentify))
        }
    }

    private mutating func nextStep() -> Step {
        guard state.enabled, !isMisconfigured else { return .nothing }
        let now = platform.now()
        state.dropExpired(now: now)
        let user = state.users.first { $0.status == .pending }
        // A state that can't be kept may not be that of a first open.
        let needsDeferred =
            isStorageUsable && deferredMatch && mayAsk && !state.isDeferredAnswered && state.affiliateId == nil
            && state.answered.isEmpty
            // A corrected first open is in the time of the service, which the device's clock does not show.
            && (state.isFirstOpenCorrected == true || now - state.firstOpenAt <= oneDayMs)
        if state.touches.isEmpty, !needsDeferred, user == nil { return .nothing }
        let pause = state.notBefore - now
        if pause > 0, pause <= oneDayMs {
            startTimer(pause)
            return .nothing
        }
        if let touch = state.touches.first { return .send(.touch(touch)) }
        let deferredIn = startedAt + deferredDelayMs - now
        if needsDeferred { return deferredIn > 0 ? .sleep(ms: deferredIn) : .send(.deferredMatch) }
        return user.map { .send(.user($0)) } ?? .nothing
    }

    private func body(of subject: Subject) -> RequestBody {
        var body = RequestBody(deviceId: state.deviceId, sdk: platform.sdk)
        switch subject {
        case .touch(let touch):
            body.firstOpenAt = state.firstOpenAt
            body.claimToken = touch.claimToken
            body.affiliateCode = touch.code
        case .deferredMatch:
            body.firstOpenAt = state.firstOpenAt
            body.deferred = true
        case .user(let user):
            body.customerUserId = user.id
            body.identifiedAt = user.at
            body.signature = user.signature
        }
        return body
    }

    /// Applies the answer to a touch, or to the deferred match if `touch` is nil.
    private mutating func apply(_ verdict: Verdict, to touch: Touch?) {
        let isAttributed = verdict.attributionId != nil
        let clockErrorMs = verdict.clockError(of: "firstOpenAt")
        if clockErrorMs != 0, state.isFirstOpenCorrected != true {
            state.firstOpenAt += clockErrorMs
            state.isFirstOpenCorrected = true
        } else if let touch {
            state.answer(touch, isAccepted: isAttributed && verdict.body.touch != "unknown")
        } else {
            state.isDeferredAnswered = true
        }
        guard isAttributed else { return }
        for index in state.users.indices where state.users[index].status == .unattributed {
            state.users[index].status = .pending
        }
        attributed(to: verdict.body.affiliateId)
    }

    private mutating func apply(_ verdict: Verdict, toUser id: String) {
        guard let index = state.users.firstIndex(where: { $0.id.isSame(as: id) }) else { return }
        let clockErrorMs = verdict.clockError(of: "identifiedAt")
        if clockErrorMs != 0, state.users[index].isCorrected != true {
            state.users[index].at += clockErrorMs
            state.users[index].isCorrected = true
        } else if verdict.attributionId != nil {
            state.users[index].status = .bound
            // The device keeps its own attribution.
            if state.affiliateId == nil { attributed(to: verdict.body.affiliateId) }
        } else if verdict.isSuccess || verdict.body.code == "no_attribution" {
            state.users[index].status = .unattributed
        } else {
            state.users.remove(at: index)
            effects.append(
                .warn("identify: the service refused the user id (\(verdict.body.code ?? "status \(verdict.status)"))."))
        }
    }

    private mutating func attributed(to affiliateId: String?) {
        guard let affiliateId, !affiliateId.isEmpty, state.affiliateId != affiliateId else { return }
        state.affiliateId = affiliateId
        effects.append(.attributed(affiliateId: affiliateId))
    }
}
