import Foundation
import XCTest

@testable import Tributary

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

final class ReferralTests: XCTestCase {
    func testAPlusAndAnEscapeAreDecoded() {
        let referral = Referral(address: "https://x.test/?via=a+b%2Fc")
        XCTAssertEqual(referral?.code, "a b/c")
    }

    func testTheFirstOfTwoParametersOfOneNameCounts() {
        XCTAssertEqual(Referral(address: "https://x.test/?via=one&via=two")?.code, "one")
    }

    func testACombiningMarkAfterTheEqualsSignBelongsToTheValue() {
        XCTAssertEqual(Referral(address: "https://x.test/?via=\u{338}a")?.code, "\u{338}a")
    }

    func testATokenIsLowerCaseAndCountsOnlyAsAUuid() {
        let token = "ABCDEF00-1111-4222-8333-444444444444"
        XCTAssertEqual(Referral(claimToken: token, code: nil)?.claimToken, token.lowercased())
        XCTAssertNil(Referral(claimToken: "{\(token)}", code: nil))
        XCTAssertNil(Referral(claimToken: token.replacingOccurrences(of: "-", with: ""), code: nil))
    }

    func testACodeWithAControlCharacterIsNone() {
        XCTAssertNil(Referral(claimToken: nil, code: "a\u{0}b"))
        XCTAssertNil(Referral(claimToken: nil, code: "a\r\nb"))
    }
}

final class StateTests: XCTestCase {
    private func isState(_ text: String) -> Bool {
        if case .state = Stored(text, host: "https://h.test") { true } else { false }
    }

    func testATimeThatWouldOverflowMeansThatTheStateIsDamaged() {
        var state = State(host: "https://h.test", deviceId: "d", now: 1, enabled: true)
        XCTAssertTrue(isState(state.text))
        for time in [Int.min, Int.max, 1 << 60] {
            state.notBefore = time
            XCTAssertFalse(isState(state.text))
        }
        state.notBefore = 0
        state.users = [User(id: "u", signature: nil, at: Int.min, status: .pending)]
        XCTAssertFalse(isState(state.text))
    }

    func testAnOptOutCountsWhateverElseIsStored() {
        guard case .optOut = Stored(#"{"enabled":false,"users":7}"#, host: "https://h.test") else {
            return XCTFail("The opt-out was not found.")
        }
    }
}

final class EngineTests: XCTestCase {
    private func sent(_ effects: [Effect]) -> (id: Int, body: RequestBody)? {
        for case .send(let id, let body, _) in effects { return (id, body) }
        return nil
    }

    func testTheDebugStateSaysWhatIsQueuedSinceWhenAndUntilWhen() throws {
        let clock = FakeClock(1_767_225_600_000)
        var platform = Platform()
        platform.now = { clock.now }
        platform.random = { 0.5 }
        var engine = Engine(
            platform: platform, owner: "https://h.test", storedText: nil, isStorageUsable: true, deferredMatch: true)
        engine.start([])
        _ = engine.takeEffects()
        let token = "11111111-1111-4111-8111-111111111111"
        _ = engine.make(.attribute(Referral(claimToken: token, code: "CODE")))
        _ = engine.make(.identify(userId: "u@x.test", signature: nil))
        XCTAssertNil(engine.debugState.nextTryInSeconds, "a request is under way")
        let request = try XCTUnwrap(sent(engine.takeEffects()))
        for (index, code) in [nil, "unavailable", "u@x.test"].enumerated() {
            let id = index == 0 ? request.id : try XCTUnwrap(sent(engine.takeEffects())).id
            let status = code == nil ? nil : 503
            engine.finished(
                requestId: id, .failed(reason: "", status: status, code: code, afterMs: 0, isStrange: false))
            if index < 2 { _ = engine.make(.applyCode(Referral(claimToken: nil, code: "CODE\(index)"))) }
        }
        clock.shift(1500)
        let state = engine.debugState
        XCTAssertEqual(state.attribution, .unknown)
        XCTAssertTrue(state.hasUser)
        XCTAssertEqual(state.queued.map(\.kind), [.token, .code, .code, .deferred, .user])
        XCTAssertEqual(state.queued.map(\.ageSeconds), [1, 1, 1, nil, 1])
        XCTAssertEqual(state.answers.map(\.outcome), [.failed, .failed, .failed])
        XCTAssertEqual(state.answers.map(\.status), [nil, 503, 503])
        XCTAssertEqual(state.answers.map(\.code), [nil, "unavailable", nil])
        // The third failure waits eight seconds, less a random quarter.
        XCTAssertEqual(state.nextTryInSeconds, 5)
        for secret in [token, "CODE", "u@x.test"] { XCTAssertFalse("\(state)".contains(secret)) }
    }

    func testARefusedDeferredMatchIsAskedAgainByADeviceWhoseClockIsTwoDaysFast() throws {
        let clock = FakeClock(2 * oneDayMs)
        var platform = Platform()
        platform.now = { clock.now }
        var engine = Engine(
            platform: platform, owner: "https://h.test", storedText: nil, isStorageUsable: true, deferredMatch: true)
        engine.start([])
        for case .startTimer(let id, let ms) in engine.takeEffects() {
            clock.shift(ms)
            engine.timerFired(id: id)
        }
        let first = try XCTUnwrap(sent(engine.takeEffects()))
        XCTAssertEqual(first.body.firstOpenAt, 2 * oneDayMs)
        let refusal = AnswerBody(Data(#"{"errors":[{"path":"firstOpenAt"}]}"#.utf8))
        let verdict = Verdict(isSuccess: false, status: 400, body: refusal, clockErrorMs: -2 * oneDayMs)
        engine.finished(requestId: first.id, .verdict(verdict))
        let second = try XCTUnwrap(sent(engine.takeEffects()))
        XCTAssertEqual(second.body.firstOpenAt, 0)
        XCTAssertEqual(second.body.deferred, true)
    }

    /// Returns the kinds of what a first start queues, for an app that was installed so many ms before.
    private func queuedAfterFirstStart(installedBefore ms: Int?) -> [TributaryDebugState.Kind] {
        let now = 1_767_225_600_000
        var platform = Platform()
        platform.now = { now }
        platform.installedAt = { ms.map { now - $0 } }
        var engine = Engine(
            platform: platform, owner: "https://h.test", storedText: nil, isStorageUsable: true, deferredMatch: true)
        engine.start([])
        return engine.debugState.queued.map(\.kind)
    }

    func testTheUserOfAnAppThatWasInstalledADayBeforeTheFirstStartIsNotMatchedByAddress() {
        XCTAssertEqual(queuedAfterFirstStart(installedBefore: nil), [.deferred])
        XCTAssertEqual(queuedAfterFirstStart(installedBefore: -oneDayMs), [.deferred])
        XCTAssertEqual(queuedAfterFirstStart(installedBefore: oneDayMs), [.deferred])
        XCTAssertEqual(queuedAfterFirstStart(installedBefore: oneDayMs + 1), [])
    }

    func testALaterStartOfANewInstallationAsksForTheMatch() throws {
        let clock = FakeClock(1_767_225_600_000)
        let installedAt = clock.now
        var platform = Platform()
        platform.now = { clock.now }
        platform.installedAt = { installedAt }
        var engine = Engine(
            platform: platform, owner: "https://h.test", storedText: nil, isStorageUsable: true, deferredMatch: true)
        // A refusal, and a consent two days later.
        engine.start([])
        _ = engine.make(.setEnabled(false))
        clock.shift(2 * oneDayMs)
        _ = engine.make(.setEnabled(true))
        var stored: String?
        for case .store(let text, _) in engine.takeEffects() { stored = text }
        engine = Engine(
            platform: platform, owner: "https://h.test", storedText: stored, isStorageUsable: true, deferredMatch: true)
        engine.start([])
        XCTAssertEqual(engine.debugState.queued.map(\.kind), [.deferred])
    }

    func testTheCreationTimeOfAFolderIsThatOfTheClockOrUnknown() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tributary-\(UUID())")
        XCTAssertNil(creationTime(of: folder))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Linux does not always know it.
        if let time = creationTime(of: folder) {
            XCTAssertEqual(Double(time), Date().timeIntervalSince1970 * 1000, accuracy: 60_000)
        }
    }
}

final class FileStorageTests: XCTestCase {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tributary-\(UUID())/a/b")

    override func tearDown() {
        try? FileManager.default.removeItem(at: folder.deletingLastPathComponent().deletingLastPathComponent())
    }

    func testAValueIsKeptUntilItIsRemoved() throws {
        let storage = FileStorage(folder: folder)
        XCTAssertNil(try storage.get("key"))
        try storage.remove("key")
        try storage.set("key", to: "one")
        try storage.set("key", to: "twö")
        XCTAssertEqual(try FileStorage(folder: folder).get("key"), "twö")
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["key.json"])
        try storage.remove("key")
        XCTAssertNil(try storage.get("key"))
    }

    func testTwoAppsOfOneUserKeepTheirStatesApart() throws {
        let files = try ["com.example.one", "com.example.two"].map { try FileStorage(app: $0).file("key") }
        XCTAssertEqual(files[0].pathComponents.suffix(3), ["com.example.one", "dev.tributary", "key.json"])
        XCTAssertNotEqual(files[0], files[1])
    }

    func testAFileThatCannotBeReadIsNotAbsent() throws {
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("key.json"), withIntermediateDirectories: true)
        XCTAssertThrowsError(try FileStorage(folder: folder).get("key"))
    }
}

final class PrivacyManifestTests: XCTestCase {
    func testThePackageContainsAManifestThatDeclaresNoTracking() throws {
        let file = try XCTUnwrap(Bundle.module.url(forResource: "PrivacyInfo", withExtension: "xcprivacy"))
        let list = try PropertyListSerialization.propertyList(from: Data(contentsOf: file), format: nil)
        let manifest = try XCTUnwrap(list as? [String: Any])
        XCTAssertEqual(manifest["NSPrivacyTracking"] as? Bool, false)
        XCTAssertEqual((manifest["NSPrivacyTrackingDomains"] as? [Any])?.count, 0)
        let apis = manifest["NSPrivacyAccessedAPITypes"] as? [[String: Any]]
        XCTAssertEqual(
            apis?.map { $0["NSPrivacyAccessedAPIType"] as? String }, ["NSPrivacyAccessedAPICategoryFileTimestamp"])
        XCTAssertEqual(apis?.first?["NSPrivacyAccessedAPITypeReasons"] as? [String], ["C617.1"])
        let collected = try XCTUnwrap(manifest["NSPrivacyCollectedDataTypes"] as? [[String: Any]])
        XCTAssertEqual(
            collected.compactMap { $0["NSPrivacyCollectedDataType"] as? String },
            ["UserID", "DeviceID", "AdvertisingData"].map { "NSPrivacyCollectedDataType\($0)" })
        XCTAssertTrue(collected.allSatisfy { $0["NSPrivacyCollectedDataTypeTracking"] as? Bool == false })
    }
}

final class PlatformTests: XCTestCase {
    func testATimerFiresOnceAndACancelledOneDoesNot() async throws {
        let fired = Locked<[String]>([])
        let platform = Platform()
        let cancel = platform.after(1) { fired.withLock { $0.append("cancelled") } }
        cancel()
        await withCheckedContinuation { continuation in
            _ = platform.after(20) {
                fired.withLock { $0.append("fired") }
                continuation.resume()
            }
        }
        XCTAssertEqual(fired.withLock { $0 }, ["fired"])
    }

    func testADeviceIdIsARandomUuidInLowerCase() {
        let ids = Set((0..<100).map { _ in Platform().newId() })
        XCTAssertEqual(ids.count, 100)
        let form = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
        for id in ids { XCTAssertNotNil(id.range(of: form, options: .regularExpression)) }
    }
}

final class SdkTests: XCTestCase {
    /// A transport that answers at once, on the thread of the request.
    private final class Answers: Sendable {
        let requests = Locked<[URLRequest]>([])

        var fetch: Fetch {
            { [self] request, completion in
                requests.withLock { $0.append(request) }
                let body = #"{"attributionId":"att_1","affiliateId":"aff_1"}"#
                completion(.success(Response(status: 200, date: nil, retryAfter: nil, body: Data(body.utf8))))
                return {}
            }
        }
    }

    private final class Memory: TributaryStorage {
        let values = Locked<[String: String]>([:])

        func get(_ key: String) -> String? { values.withLock { $0[key] } }
        func set(_ key: String, to value: String) { values.withLock { $0[key] = value } }
        func remove(_ key: String) { values.withLock { $0[key] = nil } }
    }

    private func start(
        _ answers: Answers, clock: FakeClock = FakeClock(0), options: TributaryOptions = .init(), apiKey: String? = "k",
        info: [String: String] = ["TributaryAPIBaseURL": "https://h.test/"]
    ) -> Bool {
        newProcess(answers, clock, info)
        return Tributary.start(apiKey: apiKey, options: options)
    }

    private func newProcess(_ answers: Answers, _ clock: FakeClock, _ info: [String: String]) {
        var platform = Platform()
        platform.fetch = answers.fetch
        platform.info = { info[$0] }
        platform.now = { clock.now }
        platform.after = { clock.after($0, $1) }
        platform.storage = Memory()
        platform.observe = { _ in }
        Tributary.current.withLock { $0 = Sdk(platform: platform) }
    }

    func testAppsAskForADeferredMatchUnlessTheyTurnItOff() async throws {
        for isOn in [true, false] {
            let (answers, clock) = (Answers(), FakeClock(0))
            XCTAssertTrue(start(answers, clock: clock, options: isOn ? .init() : .init(deferredMatch: false)))
            clock.advance(2000)
            Tributary.current.withLock { $0 }.client?.drain()
            XCTAssertEqual(answers.requests.withLock { $0.count }, isOn ? 1 : 0)
        }
    }

    func testTheKeyAndTheBaseAddressComeFromInfoPlist() async {
        let answers = Answers()
        let info = ["TributaryAPIKey": "pk_live_plist", "TributaryAPIBaseURL": "https://h.test/"]
        XCTAssertTrue(start(answers, options: .init(deferredMatch: false), apiKey: nil, info: info))
        await Tributary.identify(userId: "u")
        let request = answers.requests.withLock { $0.first }
        XCTAssertEqual(request?.url?.absoluteString, "https://h.test/sdk/identify")
        XCTAssertEqual(request?.value(forHTTPHeaderField: "Authorization"), "Bearer pk_live_plist")
    }

    func testTheConsentRecipeOfTheReadmeKeepsTheLinkUntilTheConsent() async {
        for isAccepted in [true, false] {
            let answers = Answers()
            let info = ["TributaryAPIKey": "pk_live_plist", "TributaryAPIBaseURL": "https://h.test/"]
            newProcess(answers, FakeClock(0), info)
            launchWithConsent(hasConsent: false)
            await Tributary.attribute(url: URL(string: "https://x.test/?via=spring")!)
            XCTAssertEqual(answers.requests.withLock { $0.count }, 0)
            onConsentChosen(isAccepted: isAccepted)
            await Tributary.attribute(url: URL(string: "https://x.test/?via=spring")!)
            XCTAssertEqual(answers.requests.withLock { $0.count }, isAccepted ? 1 : 0)
            XCTAssertEqual(Tributary.attributedAffiliateId(), isAccepted ? "aff_1" : nil)
        }
    }

    func testTheDeviceIdIsTheOneThatIsSentAndNilWithoutAConsent() async throws {
        let answers = Answers()
        newProcess(answers, FakeClock(0), ["TributaryAPIBaseURL": "https://h.test"])
        XCTAssertNil(Tributary.deviceId())
        XCTAssertNil(Tributary.debugState())
        Tributary.setEnabled(false)
        Tributary.start(apiKey: "k", options: .init(deferredMatch: false))
        XCTAssertNil(Tributary.deviceId())
        XCTAssertEqual(Tributary.debugState()?.consent, .undecided)
        Tributary.setEnabled(true)
        await Tributary.applyCode("SPRING")
        let body = try XCTUnwrap(answers.requests.withLock { $0.first?.httpBody })
        XCTAssertEqual(try Json(text: String(decoding: body, as: UTF8.self))["deviceId"]?.string, Tributary.deviceId())
        let first = Tributary.deviceId()
        Tributary.reset()
        XCTAssertNotNil(Tributary.deviceId())
        XCTAssertNotEqual(Tributary.deviceId(), first)
        Tributary.setEnabled(false)
        XCTAssertNil(Tributary.deviceId())
    }

    func testTheDebugStateHasTheFieldsOfTheSpecificationAndNothingPersonal() async throws {
        _ = start(Answers(), options: .init(deferredMatch: false), apiKey: "pk_test_1")
        await Tributary.applyCode("SECRETCODE")
        await Tributary.identify(userId: "u@x.test")
        let state = try XCTUnwrap(Tributary.debugState())
        let expected: [String: Json] = [
            "sdk": .string("ios/\(Release.version)"), "host": .string("https://h.test#test"),
            "consent": .string("granted"), "deviceId": .string(String(try XCTUnwrap(Tributary.deviceId()).prefix(8))),
            "isStored": .bool(true), "attribution": .string("attributed"), "hasUser": .bool(true), "queued": .array([]),
            "answers": .array(
                ["code", "user"].map { kind in
                    .object([
                        "kind": .string(kind), "outcome": .string("accepted"), "status": .number(200), "code": .null,
                    ])
                }),
            "nextTryInSeconds": .null,
        ]
        XCTAssertEqual(try Json(text: "\(state)"), .object(expected))
    }

    func testTheDebugStateSaysHowLongTheDeferredMatchWaits() {
        _ = start(Answers())
        XCTAssertEqual(Tributary.debugState()?.queued, [.init(kind: .deferred, ageSeconds: nil)])
        XCTAssertEqual(Tributary.debugState()?.nextTryInSeconds, 2)
        XCTAssertEqual(Tributary.debugState()?.attribution, .unknown)
        Tributary.setEnabled(false)
        XCTAssertEqual(Tributary.debugState()?.queued, [])
        XCTAssertEqual(Tributary.debugState()?.consent, .refused)
        XCTAssertEqual(Tributary.debugState()?.attribution, TributaryDebugState.Attribution.none)
    }

    func testAddressesThatAreNoBaseAddressAreRefused() {
        for address in ["h.test", "ftp://h.test", "https://", "https:///path", " "] {
            let lines = Locked<[String]>([])
            let options = TributaryOptions(apiBaseUrl: address, logger: { line in lines.withLock { $0.append(line) } })
            XCTAssertFalse(start(Answers(), options: options, info: [:]), address)
            XCTAssertEqual(lines.withLock { $0.count }, 1)
        }
    }

    func testUserIdsThatLookAlikeAreDifferentUsers() async {
        let answers = Answers()
        _ = start(answers, options: .init(deferredMatch: false))
        let first = await Tributary.identify(userId: "\u{e9}")
        let second = await Tributary.identify(userId: "e\u{301}")
        XCTAssertTrue(first && second)
        XCTAssertEqual(answers.requests.withLock { $0.count }, 2)
    }

    func testCallbacksRunOnTheMainActorAndMayCallTheSdk() async {
        let reported = expectation(description: "onAttribution")
        let options = TributaryOptions(
            deferredMatch: false,
            onAttribution: { affiliateId in
                MainActor.assertIsolated()
                XCTAssertEqual(Tributary.attributedAffiliateId(), affiliateId)
                reported.fulfill()
            })
        _ = start(Answers(), options: options)
        let completed = expectation(description: "completion")
        Tributary.applyCode("SPRING") { isKnown in
            XCTAssertTrue(isKnown)
            XCTAssertEqual(Tributary.attributedAffiliateId(), "aff_1")
            completed.fulfill()
        }
        await fulfillment(of: [reported, completed], timeout: 5)
    }

    func testCallsOfManyThreadsAllReturn() async {
        let answers = Answers()
        _ = start(answers, options: .init(deferredMatch: false))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    switch number % 5 {
                    case 0: await Tributary.identify(userId: "u\(number)")
                    case 1: await Tributary.applyCode("c\(number)")
                    case 2: await Tributary.attribute(url: URL(string: "https://x.test/?via=v\(number)")!)
                    case 3: _ = Tributary.attributedAffiliateId()
                    default: Tributary.start(apiKey: "k")
                    }
                }
            }
        }
        let isBound = await Tributary.identify(userId: "last")
        XCTAssertTrue(isBound)
    }
}
