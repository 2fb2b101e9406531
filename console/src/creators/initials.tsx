/** The first letters of the first and the last word of a name, which is beside it. */
export function Initials({ name }: { readonly name: string }) {
  const words = name.match(/[\p{L}\p{N}]\S*/gu) ?? [];
  const letters = words.length < 2 ? words : [words[0], words.at(-1)];
  return (
    <span className="initials" aria-hidden="true">
      {letters.map((word) => [...(word ?? '')][0]).join('')}
    </span>
  );
}
