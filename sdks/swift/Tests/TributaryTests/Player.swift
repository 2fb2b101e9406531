import Foundation

@testable import Tributary

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Lets `sdks/conformance/play-remote.mjs` play against the SDK. The heads of that file and of `remote.mjs` describe the messages.
final class Player {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let node: Messages
    private var driver: Driver?

    init(url: URL) {
        node = Messages(url: url)
    }

    /// Returns the names of what the SDK can play.
    func names() async throws -> [String] {
        try await node.next()["names"]?.array.compactMap(\.string) ?? []
    }

    /// Plays the scenario or the story with this name.
    func play(_ name: String) async throws {
        try await node.send(["run": .string(name)])
        while true {
            let message = try await node.next()
            if message["end"] != nil {
                if let error = message["error"]?.string { throw Failure(description: error) }
                return
            }
            try await perform(message["call"]?.string ?? "", message["arguments"]?.array ?? [], message["id"] ?? .null)
        }
    }

    private func perform(_ call: String, _ arguments: [Json], _ id: Json) async throws {
        let first = arguments.first ?? .null
        if call == "begin" {
            driver?.end()
            driver = try Driver(first)
            return try await node.answer(id, .null)
        }
        guard let driver else { throw Failure(description: "\(call) before begin") }
        let result: Json
        switch call {
        case "call": return try await make(first.string ?? "", arguments[1].array, id)
        case "start": result = .bool(driver.start())
        case "tick":
            let (elapsed, ran) = driver.clock.tick(first.int ?? 0)
            result = .object(["elapsed": .number(Double(elapsed)), "ran": .bool(ran)])
        case "stored": result = try driver.stored().map(Json.string) ?? .null
        case "warnings": result = .number(Double(driver.warnings))
        case "moving": result = .object(["tasks": .number(0), "requests": .number(Double(driver.moving()))])
        default:
            switch call {
            case "shift": driver.clock.shift(first.int ?? 0)
            case "restart": driver.restart()
            case "storage": driver.setStorage(first.string ?? "")
            case "event": driver.event(first.string ?? "")
            default: throw Failure(description: "no such call: \(call)")
            }
            result = .null
        }
        try await node.answer(id, result)
    }

    /// Calls the public API. A call with a completion is answered by it, while others are made.
    private func make(_ name: String, _ arguments: [Json], _ id: Json) async throws {
        let first = arguments.first ?? .null
        let node = node
        let completion: @MainActor @Sendable (Bool) -> Void = { result in
            Task { try await node.answer(id, .bool(result)) }
        }
        switch name {
        case "identify":
            return Tributary.identify(
                userId: first.string ?? "", signature: arguments[1].string, completion: completion)
        case "applyCode": return Tributary.applyCode(first.string ?? "", completion: completion)
        case "attribute":
            // No address for Foundation, so that the app has none to pass on.
            guard let url = first.string.flatMap(URL.init(string:)) else { return try await node.answer(id, .bool(false)) }
            return Tributary.attribute(url: url, completion: completion)
        case "attributedAffiliateId":
            return try await node.answer(id, Tributary.attributedAffiliateId().map(Json.string) ?? .null)
        case "reset": Tributary.reset()
        case "setEnabled": Tributary.setEnabled(first == .bool(true))
        default: throw Failure(description: "no such call: \(name)")
        }
        try await node.answer(id, .null)
    }
}

/// The messages of the Node program, which the test script passes on: a GET waits for the next one, and a POST sends one.
private struct Messages: Sendable {
    let url: URL

    func next() async throws -> Json {
        try Json(text: await fetch("GET", nil))
    }

    func send(_ message: [String: Json]) async throws {
        _ = try await fetch("POST", Data(Json.object(message).text.utf8))
    }

    func answer(_ id: Json, _ result: Json) async throws {
        try await send(["id": id, "result": result])
    }

    private func fetch(_ method: String, _ body: Data?) async throws -> String {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = body
        let response = try await withCheckedThrowingContinuation { continuation in
            _ = Transport.shared.fetch(request) { continuation.resume(with: $0) }
        }
        return String(decoding: response.body, as: UTF8.self)
    }
}
