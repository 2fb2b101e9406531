import Foundation

/// Delivers the referrals and users of the device: carries out what the engine decides. No function waits for the storage
/// or the network.
final class Client: Sendable {
    private struct Waiter {
        let awaited: Awaited
        let completion: @Sendable (Bool) -> Void
    }

    private struct Shared: Sendable {
        var engine: Engine
        var cancelTimer: Cancel?
        /// The request that is being sent.
        var requestId: Int?
        var cancelRequest: Cancel?
        var waiters: [Waiter] = []
    }

    /// The key of the state in the storage.
    static let key = "tributary"

    private let platform: Platform
    private let target: Target
    private let log: Log
    private let storage: any TributaryStorage
    private let onAttribution: (@MainActor @Sendable (String) -> Void)?
    private let shared: Locked<Shared>
    /// False if the storage failed: it may hold a state that must not be overwritten.
    private let isStorageUsable: Locked<Bool>
    /// Writes and the requests that follow them, in their order.
    private let queue = DispatchQueue(label: "dev.tributary.storage", qos: .utility)

    /// Reads the state from the storage. A small file is read before this returns, so that the affiliate is known at once.
    init(platform: Platform, target: Target, options: TributaryOptions, log: Log) {
        self.platform = platform
        self.target = target
        self.log = log
        storage = options.storage ?? platform.storage
        onAttribution = options.onAttribution
        var text: String?
        var isReadable = true
        do {
            text = try storage.get(Client.key)
        } catch {
            isReadable = false
            log.debug("The storage cannot be read. The state lives in memory only.")
        }
        isStorageUsable = Locked(isReadable)
        let engine = Engine(
            platform: platform, owner: target.owner, storedText: text, isStorageUsable: isReadable,
            deferredMatch: options.deferredMatch)
        shared = Locked(Shared(engine: engine))
    }

    var affiliateId: String? {
        shared.withLock { $0.engine.affiliateId }
    }

    var deviceId: String? {
        shared.withLock { $0.engine.deviceId }
    }

    var debugState: TributaryDebugState {
        shared.withLock { $0.engine.debugState }
    }

    /// Makes the calls that came before the start and begins to deliver. Returns the callbacks of the app, to be called
    /// without a lock.
    func start(_ calls: [Call]) -> @Sendable () -> Void {
        change { $0.engine.start(calls) }
    }

    func retry() {
        change { $0.engine.retry() }()
    }

    /// Makes a call. The completion is called once, on any thread.
    func make(_ call: Call, completion: @escaping @Sendable (Bool) -> Void) {
        change {
            let awaited = $0.engine.make(call)
            $0.waiters.append(Waiter(awaited: awaited, completion: completion))
        }()
    }

    /// Waits until everything is stored. For tests.
    func drain() {
        queue.sync {}
    }

    /// Changes the state and carries out the effects. Returns the callbacks of the app, to be called without a lock.
    private func change(_ body: (inout Shared) -> Void) -> @Sendable () -> Void {
        shared.withLock { shared in
            body(&shared)
            var callbacks: [@Sendable () -> Void] = []
            for effect in shared.engine.takeEffects() {
                if let callback = carryOut(effect, &shared) { callbacks.append(callback) }
            }
            let engine = shared.engine
            shared.waiters.removeAll { waiter in
                guard let result = engine.result(of: waiter.awaited) else { return false }
                callbacks.append { waiter.completion(result) }
                return true
            }
            let all = callbacks
            return { for callback in all { callback() } }
        }
    }

    /// Carries out an effect in its order. Returns what must be done without the lock, because it calls the app.
    private func carryOut(_ effect: Effect, _ shared: inout Shared) -> (@Sendable () -> Void)? {
        switch effect {
        case .store(let text, let isForced):
            queue.async { self.store(text, isForced: isForced) }
        case .send(let id, let body, let isIdentify):
            shared.requestId = id
            queue.async { self.sendRequest(id, body, isIdentify: isIdentify) }
        case .cancelRequest:
            shared.cancelRequest?()
            shared.cancelRequest = nil
            shared.requestId = nil
        case .startTimer(let id, let ms):
            shared.cancelTimer?()
            shared.cancelTimer = platform.after(ms) { [weak self] in
                self?.change { $0.engine.timerFired(id: id) }()
            }
        case .cancelTimer:
            shared.cancelTimer?()
            shared.cancelTimer = nil
        case .attributed(let affiliateId):
            guard let onAttribution else { return nil }
            return { Task { @MainActor in onAttribution(affiliateId) } }
        case .warn(let line):
            return { [log] in log.warn(line) }
        case .debug(let line):
            return { [log] in log.debug(line) }
        }
        return nil
    }

    private func store(_ text: String?, isForced: Bool) {
        guard isForced || isStorageUsable.withLock({ $0 }) else { return }
        do {
            if let text {
                try storage.set(Client.key, to: text)
            } else {
                try storage.remove(Client.key)
            }
        } catch {
            isStorageUsable.withLock { $0 = false }
            change { $0.engine.storageFailed() }()
            log.debug("The storage cannot be written. The state lives in memory only.")
        }
    }

    private func sendRequest(_ id: Int, _ body: RequestBody, isIdentify: Bool) {
        guard shared.withLock({ $0.requestId == id }) else { return }
        let url = isIdentify ? target.identify : target.install
        let cancel = send(body, to: url, apiKey: target.apiKey, on: platform) { [self] answer in
            // On the queue, so that the answer follows what is done below.
            queue.async { [self] in
                change { $0.engine.finished(requestId: id, answer) }()
            }
        }
        // A reset may have come in the meantime.
        let isCurrent = shared.withLock { shared in
            guard shared.requestId == id else { return false }
            shared.cancelRequest = cancel
            return true
        }
        if !isCurrent { cancel() }
    }
}
