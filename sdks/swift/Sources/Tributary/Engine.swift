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
    /// Stores the text; nil removes what is stored. Does nothing after the storage failed, unless it is forced.
    case store(String?, isForced: Bool)
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

/// After so many failures in a row the waits are long.
private let maxTries = 6
private let longWaitMs = 600_000
/// How long after a failure a start, a connection or the foreground waits.
private let eventDelayMs = 5_000
private let deferredDelayMs = 2_000
private let maxUserIdLength = 512
/// How much of a device id, and how many answers, the debug state shows.
private let shownDeviceIdLength = 8
private let maxShownAnswers = 10

/// Decides what is sent and stored, and when. The rules are those of SPEC.md. It does nothing itself: the client carries
/// out the effects.
struct Engine: Sendable {
    /// What a request is for.
    private enum Subject {
        case touch(Touch)
        case deferredMatch
        case user(User)

        var kind: TributaryDebugState.Kind {
            switch self {
            case .touch(let touch): touch.claimToken == nil ? .code : .token
            case .deferredMatch: .deferred
            case .user: .user
            }
        }
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
    /// True if a call deleted what is stored: every write then tries the storage, also after it failed.
    private var isReplaced = false
    /// True if this installation had no state.
    private var isFresh = false
    private var isMisconfigured = false
    private var failures = 0
    private var failedAt = 0
    /// True if the log names an answer that was not of the service.
    private var isReported = false
    private var isHeld = false
    private var phase = Phase.idle
    private var timer: Int?
    /// When the timer is due, epoch ms.
    private var timerAt = 0
    /// The last answers of this process.
    private var answers: [TributaryDebugState.Answered] = []
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
        case .undecided(let isDeferredAnswered, let firstOpenAt):
            state = Engine.emptyState(platform, owner, enabled: false, isUndecided: true)
            state.isDeferredAnswered = isDeferredAnswered
            if let firstOpenAt { state.firstOpenAt = firstOpenAt }
        case .nothing:
            state = Engine.emptyState(platform, owner, enabled: true)
            state.isDeferredAnswered = isExistingUser(installedAt: platform.installedAt(), firstOpenAt: startedAt)
            isFresh = true
        }
    }

    var affiliateId: String? { state.affiliateId }

    /// The device id, or nil without a consent.
    var deviceId: String? { state.enabled ? state.deviceId : nil }

    var debugState: TributaryDebugState {
        let now = platform.now()
        let age = { (at: Int) in max(0, now - at) / 1000 }
        var queued = state.touches.map { TributaryDebugState.Queued(kind: Subject.touch($0).kind, ageSeconds: age($0.at)) }
        if !state.isRefused, needsDeferred(now) { queued.append(.init(kind: .deferred, ageSeconds: nil)) }
        queued += state.users.filter { $0.status == .pending }.map { .init(kind: .user, ageSeconds: age($0.at)) }
        var isPlanned = timer != nil && !queued.isEmpty
        if case .sending = phase { isPlanned = false }
        return TributaryDebugState(
            sdk: platform.sdk,
            host: owner,
            consent: state.enabled ? .granted : state.isRefused ? .refused : .undecided,
            deviceId: deviceId.map { String($0.prefix(shownDeviceIdLength)) },
            isStored: isStorageUsable,
            attribution: state.affiliateId != nil ? .attributed : queued.isEmpty ? .none : .unknown,
            hasUser: !state.users.isEmpty,
            queued: queued,
            answers: answers,
            nextTryInSeconds: isPlanned ? max(0, timerAt - now + 999) / 1000 : nil)
    }

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
        isMisconfigured = false
        // Nothing is stored or sent until every call is queued: touches go first, and an opt-out holds for this start.
        isHeld = true
        for call in calls { _ = make(call) }
        isHeld = false
        if state.enabled || isReplaced { save() }
        retry()
    }

    /// Tries again: the device is connected again, or the app is back in the foreground.
    mutating func retry() {
        let wait = failedAt + eventDelayMs - platform.now()
        // These events come often, also while the service is down. After the clock was set back nothing is known.
        if case .idle = phase, failures > 0, (1...eventDelayMs).contains(wait) { return startTimer(wait) }
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
            replaceState(enabled: state.enabled, isDeferredAnswered: true, isUndecided: state.isUndecided)
        case .setEnabled(let enabled):
            setEnabled(enabled)
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
        note(answer, to: subject)
        switch answer {
        case .misconfigured(let status, _):
            isMisconfigured = true
            effects.append(
                .warn(
                    "The service answered \(status): check apiKey and apiBaseUrl. Nothing is sent until the next start."
                ))
        case .failed(let reason, _, _, let afterMs, let isStrange):
            effects.append(.debug("No answer: \(reason)."))
            failures += 1
            failedAt = platform.now()
            if isStrange, !isReported {
                isReported = true
                effects.append(.warn("Something answered \(reason): check the base address."))
            }
            if afterMs > 0 {
                state.notBefore = failedAt + afterMs
                state.pauseMs = afterMs
                save()
            }
            let factor = 1 + platform.random() / 2
            let wait = failures < maxTries ? 1000 << failures : longWaitMs
            startTimer(Int(max(Double(wait) * (factor - 0.5), Double(afterMs) * factor)))
        case .verdict(let verdict):
            effects.append(.debug("Answer \(verdict.status): \(verdict.body.code ?? verdict.body.affiliateId ?? "none")."))
            failures = 0
            switch subject {
            case .touch(let touch): apply(verdict, to: touch)
            case .deferredMatch: apply(verdict, to: nil)
            case .user(let user): apply(verdict, toUser: user)
            }
            save()
            step()
        }
    }

    /// Keeps an answer for the debug state.
    private mutating func note(_ answer: Answer, to subject: Subject) {
        let (outcome, status, code): (TributaryDebugState.Outcome, Int?, String?) =
            switch answer {
            case .verdict(let verdict): (verdict.isSuccess ? .accepted : .refused, verdict.status, verdict.body.code)
            case .misconfigured(let status, let code): (.stopped, status, code)
            case .failed(_, let status, let code, _, _): (.failed, status, code)
            }
        let answered = TributaryDebugState.Answered(
            kind: subject.kind, outcome: outcome, status: status, code: publicCode(code))
        answers = (answers + [answered]).suffix(maxShownAnswers)
    }

    /// True is the consent. False before the start of a new installation means that the consent is undecided: referrals and
    /// users wait in memory. Otherwise it is a refusal, which deletes everything.
    private mutating func setEnabled(_ enabled: Bool) {
        let isUndecided = state.isUndecided == true
        if enabled, isUndecided {
            state.enabled = true
            state.isUndecided = nil
            save()
            flush()
        } else if isHeld, !enabled, isFresh || isUndecided {
            // Before the start this is no decision of the person.
            state.enabled = false
            state.isUndecided = true
            save()
        } else if state.enabled != enabled || isUndecided {
            replaceState(enabled: enabled, isDeferredAnswered: state.isDeferredAnswered)
        }
    }

    private static func emptyState(
        _ platform: Platform, _ owner: String, enabled: Bool, isUndecided: Bool? = nil
    ) -> State {
        let deviceId = enabled || isUndecided == true ? platform.newId() : ""
        var state = State(host: owner, deviceId: deviceId, now: platform.now(), enabled: enabled)
        state.isUndecided = isUndecided
        return state
    }

    private mutating func save() {
        effects.append(.store(state.text, isForced: isReplaced))
    }

    /// Deletes everything but the consent and whether the deferred match is done.
    private mutating func replaceState(enabled: Bool, isDeferredAnswered: Bool, isUndecided: Bool? = nil) {
        mayAsk = false
        isReplaced = true
        if case .sending = phase { effects.append(.cancelRequest) }
        phase = .idle
        cancelTimer()
        failures = 0
        state = Engine.emptyState(platform, owner, enabled: enabled, isUndecided: isUndecided)
        state.isDeferredAnswered = isDeferredAnswered
        effects.append(.store(enabled && !deferredMatch ? nil : state.text, isForced: true))
    }

    private mutating func identify(_ userId: String, _ signature: String?) -> Awaited {
        guard (1...maxUserIdLength).contains(userId.utf16.count) else {
            effects.append(.warn("identify: the user id must be a text of 1 to 512 characters."))
            return .result(false)
        }
        guard !state.isRefused else { return .result(false) }
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
        guard let referral, !state.isRefused else { return .result(false) }
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
        timerAt = platform.now() + ms
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
        if state.settleTimes(now: now) { save() }
        let user = state.users.first { $0.status == .pending }
        let needsDeferred = needsDeferred(now)
        if state.touches.isEmpty, !needsDeferred, user == nil { return .nothing }
        let pause = state.notBefore - now
        // One that is longer than at its beginning is none: the clock was set back.
        if pause > 0, pause <= min(state.pauseMs ?? oneDayMs, oneDayMs) {
            // Devices that received the same time do not come all at once.
            startTimer(Int(Double(pause) * (1 + platform.random() / 2)))
            return .nothing
        }
        if let touch = state.touches.first { return .send(.touch(touch)) }
        let deferredIn = startedAt + deferredDelayMs - now
        // After the clock was set back the time is over, or nothing is known: a user behind it must not wait for the clock.
        let mustWait = (1...deferredDelayMs).contains(deferredIn)
        if needsDeferred { return mustWait ? .sleep(ms: deferredIn) : .send(.deferredMatch) }
        return user.map { .send(.user($0)) } ?? .nothing
    }

    /// Returns whether a first open without a referral is to be matched by address.
    private func needsDeferred(_ now: Int) -> Bool {
        // A state that can't be kept may not be that of a first open.
        isStorageUsable && deferredMatch && mayAsk && !state.isDeferredAnswered && state.affiliateId == nil
            && state.answered.isEmpty
            // A corrected first open is in the time of the service, which the device's clock does not show.
            && (state.isFirstOpenCorrected == true || now - state.firstOpenAt <= oneDayMs)
    }

    private func body(of subject: Subject) -> RequestBody {
        var body = RequestBody(deviceId: state.deviceId, sdk: platform.sdk)
        switch subject {
        case .touch(let touch):
            body.firstOpenAt = state.firstOpenAt
            body.claimToken = touch.claimToken
            body.affiliateCode = touch.code
            body.codeEnteredAt = touch.code != nil && touch.isUntimed != true ? touch.at : nil
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
            if !correctTime(of: touch, verdict) {
                state.answer(touch, isAccepted: isAttributed && verdict.body.touch != "unknown")
            }
        } else {
            state.isDeferredAnswered = true
        }
        guard isAttributed else { return }
        for index in state.users.indices where state.users[index].status == .unattributed {
            state.users[index].status = .pending
        }
        attributed(to: verdict.body.affiliateId)
    }

    /// Moves the time of a code that the service refused by the error of the clock, once, and then leaves it out. Returns whether the
    /// touch is to be sent again.
    private mutating func correctTime(of touch: Touch, _ verdict: Verdict) -> Bool {
        let identity = touch.identity
        guard verdict.isRefused("codeEnteredAt"), touch.isUntimed != true,
            let index = state.touches.firstIndex(where: { $0.identity.isSame(as: identity) })
        else { return false }
        let clockErrorMs = verdict.clockError(of: "codeEnteredAt")
        if clockErrorMs != 0, touch.isCorrected != true {
            state.touches[index].at += clockErrorMs
            state.touches[index].isCorrected = true
        } else {
            // Without its time the code counts from the request, which is better than not at all.
            state.touches[index].isUntimed = true
        }
        return true
    }

    private mutating func apply(_ verdict: Verdict, toUser sent: User) {
        guard let index = state.users.firstIndex(where: { $0.id.isSame(as: sent.id) }) else { return }
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
        } else if state.users[index].signature == sent.signature {
            // Not a user who came with another signature meanwhile, who is sent next.
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
