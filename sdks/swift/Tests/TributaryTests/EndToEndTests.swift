import Foundation
import XCTest

@testable import Tributary

/// Runs on the real service, with the real clock, timers and files. The test script starts the service and checks the
/// commission.
final class EndToEndTests: XCTestCase {
    func testAUserWhoFollowedALinkIsBound() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["TRIBUTARY_TEST_LINK"].flatMap(URL.init(string:)) else {
            throw XCTSkip("No service: run `node --test sdks/swift/test/end-to-end.mjs`.")
        }
        XCTAssertTrue(
            Tributary.start(
                apiKey: environment["TRIBUTARY_SDK_KEY"],
                options: TributaryOptions(apiBaseUrl: environment["TRIBUTARY_API_BASE_URL"], debug: true)))
        let isAttributed = await Tributary.attribute(url: url)
        XCTAssertTrue(isAttributed)
        XCTAssertEqual(Tributary.attributedAffiliateId(), environment["TRIBUTARY_TEST_AFFILIATE"])
        let isBound = await Tributary.identify(userId: "user-1")
        XCTAssertTrue(isBound)
        Tributary.current.withLock { $0 }.client?.drain()
        let stored = try XCTUnwrap(try FileStorage().get(Client.key))
        XCTAssertTrue(stored.contains(#""status":"bound""#))
    }
}
