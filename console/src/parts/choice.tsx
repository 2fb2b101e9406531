import { NativeSelect } from '@mantine/core';

/** A select of named options. */
export function Choice<T extends Readonly<Record<string, { readonly name: string }>>>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: T;
  readonly value: keyof T & string;
  readonly onChange: (value: string) => void;
}) {
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {Object.entries(options).map(([key, { name }]) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </NativeSelect>
  );
}

/** Returns the value of a query parameter if it is one of these names: anybody can write an address. */
export function chosen<T extends object>(names: T, value: string | null, otherwise: keyof T & string) {
  return value !== null && Object.hasOwn(names, value) ? (value as keyof T & string) : otherwise;
}
