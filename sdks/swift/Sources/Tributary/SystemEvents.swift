import Foundation

#if canImport(Network)
    import Network
#endif

/// Posted when an app returns to the foreground. By name, because UIKit and AppKit differ and app extensions have neither.
private let foreground = ["UIApplicationWillEnterForegroundNotification", "NSApplicationDidBecomeActiveNotification"]

/// Calls the function when the device is connected again, and when the app returns to the foreground, until the process
/// ends.
@Sendable func observeSystem(_ retry: @escaping @Sendable () -> Void) {
    for name in foreground {
        _ = NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in
            retry()
        }
    }
    #if canImport(Network)
        let isConnected = Locked(true)
        pathMonitor.pathUpdateHandler = { path in
            let isSatisfied = path.status == .satisfied
            let wasConnected = isConnected.withLock { connected in
                defer { connected = isSatisfied }
                return connected
            }
            if isSatisfied, !wasConnected { retry() }
        }
        pathMonitor.start(queue: DispatchQueue(label: "dev.tributary.network", qos: .utility))
    #endif
}

#if canImport(Network)
    private let pathMonitor = NWPathMonitor()
#endif
