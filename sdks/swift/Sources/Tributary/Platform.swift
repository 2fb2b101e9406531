import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Cancels what returned it.
typealias Cancel = @Sendable () -> Void

/// An answer that arrived as a whole.
struct Response: Sendable {
    let status: Int
    /// The headers `Date` and `Retry-After`.
    let date: String?
    let retryAfter: String?
    let body: Data
}

typealias Fetch =
    @Sendable (URLRequest, @escaping @Sendable (Result<Response, any Error>) -> Void) -> Cancel

/// What the SDK needs of its runtime. The conformance tests replace the clock, the timers, the randomness and the ids.
struct Platform: Sendable {
    /// The name and version of the SDK.
    var sdk = "ios/\(Release.version)"
    var host = Release.host
    var storage: any TributaryStorage = FileStorage()
    var fetch: Fetch = { request, completion in Transport.shared.fetch(request, completion) }
    /// Returns a value of the app's `Info.plist`.
    var info: @Sendable (String) -> String? = { Bundle.main.object(forInfoDictionaryKey: $0) as? String }
    /// Returns when the app was installed, epoch ms, or nil if that is unknown.
    var installedAt: @Sendable () -> Int? = { installationFolder.flatMap(creationTime) }
    /// Returns the time of the device, epoch ms.
    var now: @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1000) }
    /// Returns a number from 0 (included) to 1 (excluded).
    var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
    /// Returns a UUID v4 from a secure source.
    var newId: @Sendable () -> String = { UUID().uuidString.lowercased() }
    /// Calls the function once after this many ms.
    var after: @Sendable (Int, @escaping @Sendable () -> Void) -> Cancel = { ms, run in
        let timer = DispatchWorkItem(block: run)
        timers.asyncAfter(deadline: .now() + .milliseconds(ms), execute: timer)
        let cancelled = UncheckedTimer(timer)
        return { cancelled.cancel() }
    }
    /// Calls the function when the device is connected again, and when the app returns to the foreground.
    var observe: @Sendable (@escaping @Sendable () -> Void) -> Void = observeSystem
}

/// A folder that iOS makes when it installs the app, and that an update keeps. On a Mac the user's folders are older than the app.
private var installationFolder: URL? {
    #if os(iOS) && !targetEnvironment(macCatalyst)
        return FileManager.default.urls(for: .documentDirectory, in: .userDomainMask).first
    #else
        return nil
    #endif
}

/// Returns when a folder was created, epoch ms, or nil if that is unknown.
@Sendable func creationTime(of folder: URL) -> Int? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: folder.path)
    return (attributes?[.creationDate] as? Date).map { Int($0.timeIntervalSince1970 * 1000) }
}

private let timers = DispatchQueue(label: "dev.tributary.timers", qos: .utility)

/// A work item may be cancelled on any thread, but is not marked so.
private struct UncheckedTimer: @unchecked Sendable {
    private let timer: DispatchWorkItem

    init(_ timer: DispatchWorkItem) {
        self.timer = timer
    }

    func cancel() {
        timer.cancel()
    }
}
