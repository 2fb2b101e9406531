import Foundation
import XCTest

@testable import Tributary

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The control of `sdks/conformance/server.mjs`, which the test script starts.
struct ScriptedServer {
    struct Failure: Error {}

    /// The base address, without a slash at its end.
    let url: String

    /// Returns the server that the environment names. Skips the test if there is none.
    static func fromEnvironment() throws -> ScriptedServer {
        guard let url = ProcessInfo.processInfo.environment["TRIBUTARY_TEST_SERVER"] else {
            throw XCTSkip("No scripted server: run `node --test sdks/swift/test/*.test.mjs`.")
        }
        return ScriptedServer(url: url)
    }

    func load(_ script: Json) async throws {
        _ = try await control("PUT", "script", script)
    }

    func setOffline(_ isOffline: Bool) async throws {
        _ = try await control("PUT", "network", .object(["offline": .bool(isOffline)]))
    }

    /// Answers the requests that the server holds.
    func release() async throws {
        _ = try await control("POST", "release", nil)
    }

    func state() async throws -> Json {
        try await control("GET", "state", nil)
    }

    func held() async throws -> Int {
        try await state()["held"]?.int ?? 0
    }

    private func control(_ method: String, _ name: String, _ body: Json?) async throws -> Json {
        var request = URLRequest(url: URL(string: "\(url)/_/\(name)")!)
        request.httpMethod = method
        request.httpBody = body.map { Data($0.text.utf8) }
        let response = try await withCheckedThrowingContinuation { continuation in
            _ = Transport.shared.fetch(request) { continuation.resume(with: $0) }
        }
        guard response.status == 200 else { throw Failure() }
        return try Json(text: String(decoding: response.body, as: UTF8.self))
    }
}
