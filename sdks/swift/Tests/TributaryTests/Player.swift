import Foundation

@testable import Tributary

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A step or a request that was not as expected.
struct Mismatch: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Plays a scenario like `sdks/conformance/play.mjs`, which defines the steps.
final class Player {
    private static let times: Set = ["firstOpenAt", "identifiedAt", "codeEnteredAt", "at", "notBefore"]
    private static let steps: Set = [
        "start", "identify", "applyCode", "attribute", "reset", "setEnabled", "affiliate", "advance", "clock", "restart",
        "storage", "offline", "online", "foreground", "release", "sent", "state", "warnings", "outcome",
    ]

    private let scenario: Json
    private let server: ScriptedServer
    private let driver: Driver
    private let host: String
    private let outcomes = Locked<[String: Bool]>([:])

    init(_ scenario: Json, _ server: ScriptedServer) throws {
        self.scenario = scenario
        self.server = server
        let host = scenario["options"]?["apiBaseUrl"]?.string ?? server.url
        self.host = host
        let store = scenario["store"].map { Player.resolve($0, host: host) }
        driver = try Driver(
            server: server, host: host, options: scenario["options"] ?? .object([:]),
            store: store.map { $0.string ?? $0.text }, storageMode: scenario["storage"]?.string ?? "ok")
    }

    /// Plays the scenario. Throws an error that names the step that went wrong.
    func play() async throws {
        try await server.load(resolve(scenario["script"] ?? .array([])))
        do {
            for (index, step) in (scenario["steps"]?.array ?? []).enumerated() {
                do {
                    try await run(step)
                } catch {
                    throw Mismatch("step \(index + 1) \(step.text): \(error)")
                }
            }
            try await checkRequests()
        } catch {
            try await driver.end()
            throw error
        }
        try await driver.end()
    }

    private func run(_ step: Json) async throws {
        let names = step.object.keys.filter(Player.steps.contains)
        guard let name = names.first, names.count == 1, let value = step[name] else { throw Mismatch("no such step") }
        switch name {
        case "start":
            let result = driver.start(resolve(value).string)
            let expected = step["result"] ?? .bool(true)
            if expected != .string("any") { try expect(.bool(result), expected) }
            try await driver.settled()
        case "affiliate":
            try expect(Tributary.attributedAffiliateId().map(Json.string) ?? .null, value)
        case "advance":
            try await driver.advance(value.int ?? 0)
            try await driver.settled()
        case "clock":
            driver.clock.shift(value.int ?? 0)
        case "restart":
            try await driver.restart()
        case "storage":
            driver.setStorage(value.string ?? "ok")
        case "offline":
            try await server.setOffline(true)
        case "online":
            try await server.setOffline(false)
            if value == .string("silently") { return }
            driver.event("online")
            try await driver.settled()
        case "foreground":
            driver.event("foreground")
            try await driver.settled()
        case "release":
            try await server.release()
            try await driver.settled()
        case "sent":
            try expect(.number(Double(try await server.state()["requests"]?.array.count ?? 0)), value)
        case "outcome":
            try expect(try await outcome(value.string ?? ""), step["result"] ?? .null)
        case "warnings":
            try expect(.number(Double(driver.warnings)), value)
        case "state":
            try checkStored(value)
        default:
            try await call(name, resolve(value), step)
            try await driver.settled()
        }
    }

    private func call(_ name: String, _ value: Json, _ step: Json) async throws {
        if let outcome = step["as"]?.string {
            let keep: @MainActor @Sendable (Bool) -> Void = { [outcomes] result in
                outcomes.withLock { $0[outcome] = result }
            }
            switch name {
            case "identify":
                Tributary.identify(userId: value.string ?? "", signature: step["signature"]?.string, completion: keep)
            case "attribute": Tributary.attribute(url: try url(value), completion: keep)
            default: Tributary.applyCode(value.string ?? "", completion: keep)
            }
            return
        }
        let result: Bool?
        switch name {
        case "identify":
            result = await Tributary.identify(userId: value.string ?? "", signature: step["signature"]?.string)
        case "attribute": result = await Tributary.attribute(url: try url(value))
        case "applyCode": result = await Tributary.applyCode(value.string ?? "")
        case "reset":
            Tributary.reset()
            result = nil
        default:
            Tributary.setEnabled(value == .bool(true))
            result = nil
        }
        if let expected = step["result"] { try expect(result.map(Json.bool) ?? .null, expected) }
    }

    private func url(_ value: Json) throws -> URL {
        guard let url = value.string.flatMap(URL.init(string:)) else { throw Mismatch("URL refuses the address") }
        return url
    }

    /// Waits for the completion of the call with this name.
    private func outcome(_ name: String) async throws -> Json {
        for _ in 0..<10_000 {
            if let result = outcomes.withLock({ $0[name] }) { return .bool(result) }
            try await driver.pause()
        }
        throw Mismatch("the completion was not called")
    }

    private func checkStored(_ expected: Json) throws {
        let text = try driver.stored()
        let isExpected =
            switch expected {
            case .null: text == nil
            case .string(let wanted): text == wanted
            default: try text.map { try Json(text: $0).contains(resolve(expected)) } ?? false
            }
        if !isExpected { throw Mismatch("expected \(expected.text), stored is \(text ?? "nothing")") }
    }

    private func checkRequests() async throws {
        let state = try await server.state()
        if state["unexpected"]?.array.isEmpty == false {
            throw Mismatch("the script has no answer for \(state["unexpected"]!.text)")
        }
        let received = state["requests"]?.array ?? []
        if let expected = scenario["requests"]?.array {
            guard received.count == expected.count else {
                throw Mismatch("expected \(expected.count) requests, got \(Json.array(received).text)")
            }
            for (index, line) in expected.enumerated() { try checkRequest(index, received[index], line) }
        }
        if state["unused"] != .number(0) { throw Mismatch("answers of the script were not used: \(state.text)") }
    }

    private func checkRequest(_ index: Int, _ received: Json, _ line: Json) throws {
        guard let (path, stated) = line.object.first else { return }
        var wanted = stated.object
        let device = wanted.removeValue(forKey: "device") ?? .number(1)
        wanted["deviceId"] = .string("$device\(device.int ?? 1)")
        wanted["acceptUnattributed"] = .bool(true)
        let time = path == "install" ? "firstOpenAt" : "identifiedAt"
        wanted[time] = wanted[time] ?? .number(0)
        if path == "install", let code = wanted["affiliateCode"]?.string, entered.contains(code) {
            wanted["codeEnteredAt"] = wanted["codeEnteredAt"] ?? .number(0)
        }
        wanted = wanted.filter { $0.value != .null }
        var body = received["body"]?.object ?? [:]
        let sdk = body.removeValue(forKey: "sdk")
        let full = resolve(.object(wanted))
        guard received["path"] == .string(path), .object(body) == full else {
            throw Mismatch("request \(index + 1): expected \(path) \(full.text), got \(received.text)")
        }
        try expect(sdk ?? .null, .string("ios/\(Release.version)"))
        let apiKey = scenario["options"]?["apiKey"]?.string ?? "pk_live_test"
        try expect(received["authorization"] ?? .null, .string("Bearer \(apiKey)"))
    }

    /// The codes that the scenario enters.
    private var entered: [String] {
        (scenario["steps"]?.array ?? []).compactMap {
            $0["applyCode"]?.string?.trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    private func expect(_ actual: Json, _ expected: Json) throws {
        if actual != expected { throw Mismatch("expected \(expected.text), got \(actual.text)") }
    }

    private func resolve(_ value: Json) -> Json {
        Player.resolve(value, host: host)
    }

    /// Replaces `$token1`, `$device1`, `$host` and relative times by their values.
    private static func resolve(_ value: Json, host: String, key: String = "") -> Json {
        switch value {
        case .array(let items):
            return .array(items.map { resolve($0, host: host) })
        case .object(let fields):
            return .object(
                Dictionary(uniqueKeysWithValues: fields.map { ($0, resolve($1, host: host, key: $0)) }))
        case .number(let number):
            return .number(times.contains(key) ? Double(Driver.start) + number : number)
        case .string(let text):
            if ["date", "retry-after"].contains(key), text.hasPrefix("@"), let ms = Int(text.dropFirst()) {
                return .string(httpDate(Driver.start + ms))
            }
            var text = text.replacingOccurrences(of: "$host", with: host)
            for digit in 1...9 {
                text = text.replacingOccurrences(of: "$token\(digit)", with: token(digit))
                text = text.replacingOccurrences(of: "$device\(digit)", with: deviceId(digit))
            }
            return .string(text)
        case .null, .bool:
            return value
        }
    }

    private static func token(_ digit: Int) -> String {
        let repeated = { (count: Int) in String(repeating: String(digit), count: count) }
        return "\(repeated(8))-\(repeated(4))-4\(repeated(3))-8\(repeated(3))-\(repeated(12))"
    }

    private static func httpDate(_ ms: Int) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(ms) / 1000))
    }
}
