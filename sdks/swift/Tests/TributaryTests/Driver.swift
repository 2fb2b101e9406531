import Foundation

@testable import Tributary

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A file whose failures the test decides.
final class TestStorage: TributaryStorage {
    struct Refused: Error {}

    private let files: FileStorage
    private let mode = Locked("ok")

    init(folder: URL) {
        files = FileStorage(folder: folder)
    }

    var isStuck: Bool { mode.withLock { $0 == "stuck" } }

    func set(mode value: String) {
        mode.withLock { $0 = value }
    }

    /// Returns what is stored, whatever the mode.
    func stored() throws -> String? {
        try files.get(Client.key)
    }

    func store(_ text: String) throws {
        try files.set(Client.key, to: text)
    }

    func get(_ key: String) throws -> String? {
        try refuse("unreadable")
        return try files.get(key)
    }

    func set(_ key: String, to value: String) throws {
        try refuse("unwritable")
        while isStuck { usleep(1000) }
        try files.set(key, to: value)
    }

    func remove(_ key: String) throws {
        try refuse("unwritable")
        try files.remove(key)
    }

    private func refuse(_ refused: String) throws {
        if mode.withLock({ $0 == refused }) { throw Refused() }
    }
}

/// Connects the scenarios and the stories to the public API. Requests, files and threads are real; the clock, the timers, the
/// randomness and the ids are not.
final class Driver: Sendable {
    private struct Shared: Sendable {
        /// Counts the processes: an answer to an earlier one is not delivered.
        var process = 0
        var inFlight = 0
        var ids = 0
        var lines: [String] = []
        var retry: (@Sendable () -> Void)?
        var cancels: [Cancel] = []
    }

    let clock: FakeClock
    private let options: Json
    private let host: String
    private let folder: URL
    private let storage: TestStorage
    private let shared = Locked(Shared())

    /// A new device, as `play-remote.mjs` describes it.
    init(_ settings: Json) throws {
        clock = FakeClock(settings["now"]?.int ?? 0)
        options = settings["options"] ?? .object([:])
        host = settings["host"]?.string ?? ""
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tributary-\(UUID())", isDirectory: true)
        storage = TestStorage(folder: folder)
        if let store = settings["store"]?.string { try storage.store(store) }
        storage.set(mode: settings["storage"]?.string ?? "ok")
        beginProcess()
    }

    /// Ends the process and deletes its files.
    func end() {
        storage.set(mode: "ok")
        restart()
        try? FileManager.default.removeItem(at: folder)
    }

    func start() -> Bool {
        let isThrowing = options["throwingCallbacks"] == .bool(true)
        return Tributary.start(
            apiKey: options["apiKey"]?.string ?? "pk_live_test",
            options: TributaryOptions(
                apiBaseUrl: host,
                storage: storage,
                // Null means that the option is not given.
                deferredMatch: options["deferredMatch"] == .null
                    ? TributaryOptions().deferredMatch : options["deferredMatch"]?.bool ?? false,
                debug: options["debug"]?.bool ?? false,
                logger: { [shared] line in
                    shared.withLock { $0.lines.append(line) }
                    // Callbacks can't throw in Swift. They can call the SDK.
                    if isThrowing { _ = Tributary.attributedAffiliateId() }
                },
                onAttribution: { _ in
                    if isThrowing { Tributary.attribute(url: URL(string: "https://x.test")!) }
                }))
    }

    /// Ends the process; the storage stays.
    func restart() {
        Tributary.current.withLock { $0 }.client?.drain()
        let cancels = shared.withLock { shared in
            shared.process += 1
            shared.inFlight = 0
            shared.retry = nil
            defer { shared.cancels = [] }
            return shared.cancels
        }
        for cancel in cancels { cancel() }
        clock.clear()
        beginProcess()
    }

    func setStorage(_ mode: String) {
        storage.set(mode: mode)
    }

    /// The device is connected again, or the app returns to the foreground.
    func event(_ name: String) {
        if name == "foreground" {
            NotificationCenter.default.post(
                name: Notification.Name("UIApplicationWillEnterForegroundNotification"), object: nil)
        } else {
            shared.withLock { $0.retry }?()
        }
    }

    func stored() throws -> String? {
        try storage.stored()
    }

    var warnings: Int { shared.withLock { $0.lines.count } }

    /// Returns how many requests are under way, when the SDK has done what it had to do before.
    func moving() -> Int {
        if storage.isStuck {
            usleep(10_000)
        } else {
            // An answer queues the next request, which queues nothing.
            for _ in 0..<3 { Tributary.current.withLock { $0 }.client?.drain() }
        }
        return shared.withLock { $0.inFlight }
    }

    private func beginProcess() {
        let (clock, shared) = (clock, shared)
        let random = options["random"]?.number ?? 0
        var platform = Platform()
        platform.host = ""
        platform.info = { _ in nil }
        platform.now = { clock.now }
        platform.random = { random }
        platform.after = { clock.after($0, $1) }
        platform.newId = {
            let count = shared.withLock { shared in
                shared.ids += 1
                return shared.ids
            }
            return deviceId(count)
        }
        let process = shared.withLock { $0.process }
        platform.fetch = countingFetch(process)
        platform.observe = { retry in
            shared.withLock { $0.retry = retry }
            observeSystem { if shared.withLock({ $0.process == process }) { retry() } }
        }
        Tributary.current.withLock { $0 = Sdk(platform: platform) }
    }

    /// Counts the requests that are not answered yet. A process that ended sends nothing and receives nothing.
    private func countingFetch(_ process: Int) -> Fetch {
        let shared = shared
        return { request, completion in
            let isAlive = shared.withLock { shared in
                if shared.process == process { shared.inFlight += 1 }
                return shared.process == process
            }
            guard isAlive else { return {} }
            let cancel = Transport.shared.fetch(request) { result in
                guard shared.withLock({ $0.process == process }) else { return }
                completion(result)
                shared.withLock { if $0.process == process { $0.inFlight -= 1 } }
            }
            shared.withLock { $0.cancels.append(cancel) }
            return cancel
        }
    }
}

func deviceId(_ number: Int) -> String {
    String(format: "00000000-0000-4000-8000-%012d", number)
}
