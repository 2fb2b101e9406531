import Foundation
import XCTest

@testable import Tributary

/// Runs on the real service, with the real clock, timers and files. The test script starts the service, runs each test with
/// an app of its own, and checks the commission.
final class EndToEndTests: XCTestCase {
    private let environment = ProcessInfo.processInfo.environment

    private func start(_ options: TributaryOptions = .init()) throws {
        guard let baseUrl = environment["TRIBUTARY_TEST_SERVICE"] else {
            throw XCTSkip("No service: run `node --test sdks/swift/test/end-to-end.mjs`.")
        }
        var options = options
        options.apiBaseUrl = baseUrl
        options.debug = true
        XCTAssertTrue(Tributary.start(apiKey: environment["TRIBUTARY_SDK_KEY"], options: options))
    }

    private func expectAttribution(file: StaticString = #filePath, line: UInt = #line) {
        let affiliate = environment["TRIBUTARY_TEST_AFFILIATE"]
        XCTAssertEqual(Tributary.attributedAffiliateId(), affiliate, file: file, line: line)
    }

    func testALinkThatOpensTheAppAttributesItsUser() async throws {
        try start()
        let url = try XCTUnwrap(environment["TRIBUTARY_TEST_LINK"].flatMap(URL.init(string:)))
        let isAttributed = await Tributary.attribute(url: url)
        XCTAssertTrue(isAttributed)
        expectAttribution()
        let isBound = await Tributary.identify(userId: "user-1")
        XCTAssertTrue(isBound)
        Tributary.current.withLock { $0 }.client?.drain()
        let stored = try XCTUnwrap(try FileStorage().get(Client.key))
        XCTAssertTrue(stored.contains(#""status":"bound""#))
    }

    func testAnOrganicUserWhoEntersACodeLaterIsAttributed() async throws {
        try start(TributaryOptions(deferredMatch: false))
        let isBoundAtFirst = await Tributary.identify(userId: "user-1")
        XCTAssertFalse(isBoundAtFirst)
        let isKnown = await Tributary.applyCode("nobody")
        XCTAssertFalse(isKnown)
        let isApplied = await Tributary.applyCode("SPRING")
        XCTAssertTrue(isApplied)
        expectAttribution()
        let isBound = await Tributary.identify(userId: "user-1")
        XCTAssertTrue(isBound)
    }

    func testAFirstOpenAfterAClickFromTheSameAddressIsAttributed() async throws {
        try start()
        let isBound = await Tributary.identify(userId: "user-1")
        XCTAssertTrue(isBound)
        expectAttribution()
    }
}
