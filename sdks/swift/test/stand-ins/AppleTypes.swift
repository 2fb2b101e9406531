// Types of Apple's Foundation that Swift for Linux lacks. The stand-ins have the declarations that the SDK, its example and its
// README use, so that the compiler checks these uses on Linux. They do nothing.
@_exported import Foundation

open class NSUserActivity: NSObject {
    open var webpageURL: URL?
}

extension NSUserActivity: @unchecked Sendable {}
