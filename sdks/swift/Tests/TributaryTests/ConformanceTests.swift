import Foundation
import XCTest

final class ConformanceTests: XCTestCase {
    /// Prints one line for each scenario and story, which the test script reads.
    func testEveryScenarioThatTheRuntimeCanPlayPasses() async throws {
        guard let url = ProcessInfo.processInfo.environment["TRIBUTARY_TEST_PLAYER"].flatMap(URL.init(string:)) else {
            throw XCTSkip("No player: run `node --test sdks/swift/test/*.test.mjs`.")
        }
        let player = Player(url: url)
        let names = try await player.names()
        var failed = 0
        for name in names {
            do {
                try await player.play(name)
                report("scenario passed: \(name)")
            } catch {
                failed += 1
                report("scenario failed: \(name): \(error)")
                XCTFail("\(name): \(error)")
            }
        }
        report("\(names.count - failed) of \(names.count) scenarios passed.")
        XCTAssertGreaterThan(names.count, 0)
    }

    /// Prints a line at once, also into a pipe.
    private func report(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}
