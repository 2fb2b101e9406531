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

    /// Moves to the next timer within this time, or by all of it, and runs that timer.
    func tick(_ ms: Int) -> (elapsed: Int, ran: Bool) {
        let (step, run) = shared.withLock { shared in
            let end = shared.elapsed + ms
            let next = shared.timers.filter { $0.at <= end }.min { ($0.at, $0.id) < ($1.at, $1.id) }
            let step = (next?.at ?? end) - shared.elapsed
            shared.now += step
            shared.elapsed += step
            if let next { shared.timers.removeAll { $0.id == next.id } }
            return (step, next?.run)
        }
        run?()
        return (step, run != nil)
    }

    /// Runs the timers of the next `ms` in order.
    func advance(_ ms: Int) {
        var left = ms
        while true {
            let (elapsed, ran) = tick(left)
            if !ran { return }
            left -= elapsed
        }
    }

    func clear() {
        shared.withLock { $0.timers = [] }
    }
}
