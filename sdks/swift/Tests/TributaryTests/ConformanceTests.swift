import Foundation
import XCTest

@testable import Tributary

final class ConformanceTests: XCTestCase {
    /// Prints one line for each scenario, which the test script reads.
    func testEveryScenarioThatTheRuntimeCanPlayPasses() async throws {
        let server = try ScriptedServer.fromEnvironment()
        var played = 0
        var failed = 0
        for scenario in try readScenarios() {
            let name = scenario["name"]?.string ?? ""
            let needs = scenario["needs"]?.array.compactMap(\.string) ?? []
            guard abilities.isSuperset(of: needs) else {
                report("scenario left out: \(name)")
                continue
            }
            played += 1
            do {
                try await Player(scenario, server).play()
                report("scenario passed: \(name)")
            } catch {
                failed += 1
                report("scenario failed: \(name): \(error)")
                XCTFail("\(name): \(error)")
            }
        }
        report("\(played - failed) of \(played) scenarios passed.")
        XCTAssertGreaterThan(played, 0)
    }

    /// Prints a line at once, also into a pipe.
    private func report(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    /// Reads all scenarios, in the order of their files.
    private func readScenarios() throws -> [Json] {
        let conformance = repository.appendingPathComponent("sdks/conformance/scenarios", isDirectory: true)
        let files = try FileManager.default.contentsOfDirectory(at: conformance, includingPropertiesForKeys: nil)
        return try files.sorted { $0.path < $1.path }.flatMap { file in
            try JSONDecoder().decode([Json].self, from: Data(contentsOf: file))
        }
    }
}

/// The root of the repository.
let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
