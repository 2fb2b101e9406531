@testable import Tributary

/// A clock and timers that move only when a test says so.
final class FakeClock: Sendable {
    private struct Timer {
        let id: Int
        let at: Int
        let run: @Sendable () -> Void
    }

    private struct Shared: Sendable {
        var now: Int
        var elapsed = 0
        var lastId = 0
        var timers: [Timer] = []
    }

    private let shared: Locked<Shared>

    init(_ now: Int) {
        shared = Locked(Shared(now: now))
    }

    var now: Int { shared.withLock { $0.now } }

    func after(_ ms: Int, _ run: @escaping @Sendable () -> Void) -> Cancel {
        let id = shared.withLock { shared in
            shared.lastId += 1
            shared.timers.append(Timer(id: shared.lastId, at: shared.elapsed + ms, run: run))
            return shared.lastId
        }
        return { [shared] in shared.withLock { $0.timers.removeAll { $0.id == id } } }
    }

    /// Changes what the device believes the time to be.
    func shift(_ ms: Int) {
        shared.withLock { $0.now += ms }
    }

    /// Runs the timers of the next `ms` in order; `settle` runs after each.
    func advance(_ ms: Int, settle: () async throws -> Void) async throws {
        let end = shared.withLock { $0.elapsed + ms }
        while let due = takeNext(until: end) {
            due.run()
            try await settle()
        }
    }

    func clear() {
        shared.withLock { $0.timers = [] }
    }

    /// Moves the clock to the next timer that is due by `end` and returns it, or moves it to `end`.
    private func takeNext(until end: Int) -> Timer? {
        shared.withLock { shared in
            let next = shared.timers.filter { $0.at <= end }.min { ($0.at, $0.id) < ($1.at, $1.id) }
            let to = next?.at ?? end
            shared.now += to - shared.elapsed
            shared.elapsed = to
            if let next { shared.timers.removeAll { $0.id == next.id } }
            return next
        }
    }
}
