import Foundation

/// A JSON value that can be compared.
enum Json: Codable, Equatable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([Json])
    case object([String: Json])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([Json].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: Json].self))
        }
    }

    init(text: String) throws {
        self = try JSONDecoder().decode(Json.self, from: Data(text.utf8))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    subscript(name: String) -> Json? { object[name] }

    var object: [String: Json] { if case .object(let value) = self { value } else { [:] } }
    var array: [Json] { if case .array(let value) = self { value } else { [] } }
    var string: String? { if case .string(let value) = self { value } else { nil } }
    var number: Double? { if case .number(let value) = self { value } else { nil } }
    var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    var int: Int? { number.map { Int($0) } }

    /// Whether this has everything that `expected` states. Lists and the values of other fields must be equal.
    func contains(_ expected: Json) -> Bool {
        expected.object.allSatisfy { name, value in
            guard case .array(let items) = value else { return self[name] == value }
            guard case .array(let actual) = self[name], actual.count == items.count else { return false }
            return zip(actual, items).allSatisfy { item, wanted in
                if case .object = wanted { item.contains(wanted) } else { item == wanted }
            }
        }
    }
}
