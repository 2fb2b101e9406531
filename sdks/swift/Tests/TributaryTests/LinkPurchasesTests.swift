import Foundation
import XCTest

@testable import Tributary

final class LinkPurchasesTests: XCTestCase {
    private struct Refused: Error {}

    private let received = Locked<[String]>([])

    private func billing(_ name: String, maxCodeLength: Int = 64) -> TributaryBillingSdk {
        TributaryBillingSdk(
            name: name, maxCodeLength: maxCodeLength,
            identify: { [received] userId in received.withLock { $0.append("\(name) \(userId)") } },
            setAttribute: { [received] attribute, value in
                received.withLock { $0.append("\(name) \(attribute)=\(value)") }
            })
    }

    func testEveryBillingSdkGetsTheUserIdAndThenTheCode() async {
        let result = await Tributary.linkPurchases(userId: "u", to: [billing("one"), billing("two")], code: "SPRING")
        XCTAssertEqual(Set(result.userId), ["one", "two"])
        XCTAssertEqual(Set(result.code), ["one", "two"])
        for name in ["one", "two"] {
            let lines = received.withLock { $0 }.filter { $0.hasPrefix(name) }
            XCTAssertEqual(lines, ["\(name) u", "\(name) tributary_code=SPRING"])
        }
    }

    func testABillingSdkThatFailsDoesNotStopTheOthersAndGetsNoCode() async {
        let wrong: TributaryBillingSdk.SetAttribute = { _, _ in XCTFail("It did not accept the user id.") }
        let refusing = TributaryBillingSdk(name: "refusing", identify: { _ in throw Refused() }, setAttribute: wrong)
        let half = TributaryBillingSdk(name: "half", identify: { _ in }, setAttribute: { _, _ in throw Refused() })
        let result = await Tributary.linkPurchases(userId: "u", to: [refusing, half, billing("last")], code: "SPRING")
        XCTAssertEqual(Set(result.userId), ["half", "last"])
        XCTAssertEqual(result.code, ["last"])
    }

    func testACodeThatMayBeAnAddressOrANameOrIsTooLongIsNotPassedOn() async {
        let long = String(repeating: "x", count: 65)
        for code in ["", "u@x.test", "Ann Lee", "a\u{a0}b", "a\tb", "a\u{0}b", long] {
            let result = await Tributary.linkPurchases(userId: "u", to: [billing("one")], code: code)
            XCTAssertEqual(result, .init(userId: ["one"], code: []), code)
        }
        for (length, expected) in [(50, ["one", "short"]), (51, ["one"]), (64, ["one"])] {
            let sdks = [billing("one"), billing("short", maxCodeLength: 50)]
            let code = String(repeating: "x", count: length)
            let result = await Tributary.linkPurchases(userId: "u", to: sdks, code: code)
            XCTAssertEqual(result.code.sorted(), expected)
        }
    }

    func testAUserIdThatNoProviderReportsIsPassedOnToNobody() async {
        for userId in ["", String(repeating: "x", count: 513)] {
            let result = await Tributary.linkPurchases(userId: userId, to: [billing("one")])
            XCTAssertEqual(result, .init())
        }
        XCTAssertEqual(received.withLock { $0 }, [])
    }

    func testABillingSdkThatDoesNotAnswerDelaysTheResultByTenSeconds() async throws {
        let clock = FakeClock(0)
        var platform = Platform()
        platform.after = { clock.after($0, $1) }
        let linker = PurchaseLinker(platform: platform)
        let isAsked = expectation(description: "the silent one is asked")
        let silent = TributaryBillingSdk(
            name: "silent",
            identify: { _ in
                isAsked.fulfill()
                try await Task.sleep(nanoseconds: 60_000_000_000)
            }, setAttribute: { _, _ in })
        let sdks = [billing("one"), silent]
        let linked = Task { await linker.link("u", to: sdks, code: "SPRING") }
        await fulfillment(of: [isAsked], timeout: 30)
        while received.withLock({ $0.count < 2 }) { await Task.yield() }
        clock.advance(10_000)
        let result = await linked.value
        XCTAssertEqual(result.userId, ["one"])
    }
}
