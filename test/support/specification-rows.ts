import { describe, expect, it } from 'vitest'

/** The JSON of a member, or undefined for one that is left out. */
export type Json = string | undefined

/** A form of a member, and what is read of it. */
export type Form<Sent> = readonly [sent: Sent, read: object]

/** A row of a table of the specification: its documented forms, and at least three odd ones. */
export type Row<Sent> = {
  row: string
  documented: readonly [Form<Sent>, ...Form<Sent>[]]
  odd: readonly [Form<Sent>, Form<Sent>, Form<Sent>, ...Form<Sent>[]]
}

/** Odd forms that are all read as the same. */
export function alike<Sent>(
  as: object,
  ...[first, second, third, ...more]: [Sent, Sent, Sent, ...Sent[]]
): Row<Sent>['odd'] {
  const form = (sent: Sent): Form<Sent> => [sent, as]
  return [form(first), form(second), form(third), ...more.map(form)]
}

/**
 * Plays each form of each row, and compares what is read of it.
 * @param play reads one form, independently of every other
 */
export function playRows<Sent>(
  section: string,
  rows: readonly Row<Sent>[],
  play: (sent: Sent, row: string) => unknown,
): void {
  describe(section, () => {
    it.each(rows)('$row', async ({ row, documented, odd }) => {
      const forms = [...documented, ...odd]
      const expected = forms.map(([sent, as]) => [nameForm(sent), as] as const)
      expect(new Set(expected.map(([name]) => name)).size).toBe(forms.length)
      const found: unknown[] = []
      for (const [sent] of forms) found.push([nameForm(sent), await play(sent, row)])
      expect(found).toMatchObject(expected)
    })
  })
}

/** Short enough to be read in a failure; no two forms of a row may share one. */
function nameForm(sent: unknown): string {
  return (JSON.stringify(sent) ?? 'left out').slice(0, 140)
}

/** Writes a JSON object, with other members where they are given; undefined leaves one out. */
export function writeObject(
  members: Readonly<Record<string, Json>>,
  change: Readonly<Record<string, Json>> = {},
): string {
  const written = Object.entries({ ...members, ...change }).flatMap(([name, json]) =>
    json === undefined ? [] : `${JSON.stringify(name)}:${json}`,
  )
  return `{${written.join(',')}}`
}
