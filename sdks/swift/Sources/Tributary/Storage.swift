import Foundation

/// Keeps texts by key.
public protocol TributaryStorage: Sendable {
    /// Returns the value of a key, or nil if there is none. Throws if it can't know.
    func get(_ key: String) throws -> String?
    func set(_ key: String, to value: String) throws
    func remove(_ key: String) throws
}

/// Keeps each text in a file in Application Support, which is excluded from backups: the device id ends with the
/// installation.
struct FileStorage: TributaryStorage {
    /// The folder, if it is not the app's own.
    var folder: URL?
    /// The bundle id. Apps outside the sandbox of macOS share one Application Support. A tool without a bundle has a name.
    var app = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName

    func get(_ key: String) throws -> String? {
        do {
            return String(decoding: try Data(contentsOf: file(key)), as: UTF8.self)
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        }
    }

    func set(_ key: String, to value: String) throws {
        let file = try file(key)
        var parent = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        #if canImport(Darwin)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try parent.setResourceValues(values)
            // A background launch after the first unlock can read the file.
            let options: Data.WritingOptions = [.atomic, .completeFileProtectionUntilFirstUserAuthentication]
        #else
            parent.standardize()
            let options: Data.WritingOptions = [.atomic]
        #endif
        try Data(value.utf8).write(to: file, options: options)
    }

    func remove(_ key: String) throws {
        do {
            try FileManager.default.removeItem(at: file(key))
        } catch CocoaError.fileNoSuchFile {
            // Nothing is stored.
        }
    }

    func file(_ key: String) throws -> URL {
        let parent =
            try folder
            ?? FileManager.default.url(
                for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true
            ).appendingPathComponent(app, isDirectory: true).appendingPathComponent("dev.tributary", isDirectory: true)
        return parent.appendingPathComponent("\(key).json", isDirectory: false)
    }
}
