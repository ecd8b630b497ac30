import { describe, expect, it } from 'vitest'

/** A form of a member, and what order systems are shown when it is sent. */
export type Form<Sent> = readonly [sent: Sent, shown: object]

/** A row of a table of the specification: its documented forms, and at least three odd ones. */
export type Row<Sent> = {
  row: string
  documented: readonly [Form<Sent>, ...Form<Sent>[]]
  odd: readonly [Form<Sent>, Form<Sent>, Form<Sent>, ...Form<Sent>[]]
}

/** The JSON of a member, or undefined for one that is left out. */
export type Json = string | undefined

/**
 * Plays each form of each row, and compares what is shown.
 * @param play sends one form, and reads what a service shows that has seen no other
 */
export function playRows<Sent>(
  section: string,
  rows: readonly Row<Sent>[],
  play: (sent: Sent, row: string) => Promise<unknown>,
): void {
  describe(section, () => {
    for (const { row, documented, odd } of rows) {
      it(row, async () => {
        const forms = [...documented, ...odd]
        const shown = new Map<string, unknown>()
        for (const [sent] of forms) shown.set(nameForm(sent), await play(sent, row))
        const expected = new Map(forms.map(([sent, show]) => [nameForm(sent), show]))
        expect(shown.size).toBe(forms.length)
        expect(Object.fromEntries(shown)).toMatchObject(Object.fromEntries(expected))
      })
    }
  })
}

/** Short enough to be read; that no two forms of a row share one is asserted. */
function nameForm(sent: unknown): string {
  const name = typeof sent === 'string' ? sent : (JSON.stringify(sent) ?? 'left out')
  return name.slice(0, 140)
}

/** Writes a JSON object, with the JSON of one member replaced. */
export function writeObject(
  members: Readonly<Record<string, Json>>,
  name: string,
  json: Json,
): string {
  const all = Object.entries({ ...members, [name]: json })
  const written = all.flatMap(([key, value]) =>
    value === undefined ? [] : `${JSON.stringify(key)}:${value}`,
  )
  return `{${written.join(',')}}`
}
