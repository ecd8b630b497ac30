import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

const CLOCK = String.raw`\b(now|clock_timestamp|gen_random_uuid)\(\)`
/** Up to the end of the clause, or of the statement. */
const REST = String.raw`(?:(?!\breturning\b|\bfrom\b|\bwhere\b)[^\`])*?`

/** What Citus cannot plan in a statement that writes: its coordinator evaluates functions, and only in some places. */
const REFUSED = {
  'the moment inside do update set': new RegExp(`do update\\s+set${REST}${CLOCK}`, 'g'),
  'the moment inside returning': new RegExp(`\\breturning\\b[^\`)]*${CLOCK}`, 'g'),
  'a time as text inside returning': /\breturning\b[^`)]*_(at|until)::text/g,
  'the moment inside case or coalesce of an update': new RegExp(
    `\\bset\\b${REST}\\b(case|coalesce\\()${REST}${CLOCK}${REST}(\\bend\\b|\\))`,
    'g',
  ),
  'a function of a column, which depends on settings, inside an update': new RegExp(
    `\\bset\\b${REST}\\b(concat_ws\\(|to_json\\(|extract\\(epoch from \\w+\\.)`,
    'g',
  ),
  'json inside returning': /\breturning\b[^`)]*\bto_json\(/g,
  'a place beside an insert':
    /`[^`]*(\binsert into\b[^`]*\bctid\b|\bctid\b[^`]*\binsert into\b)[^`]*`/g,
  'a column of times and an interval inside an update': new RegExp(
    `\\bset\\b${REST}\\b\\w+_at [+-] (?!\\w+\\.\\w+_at)[^,\`]*interval`,
    'g',
  ),
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
)

it.each(Object.entries(REFUSED))('no statement has %s', (_, pattern) => {
  const found = files.flatMap((path) =>
    [...readFileSync(join(SRC, path), 'utf8').matchAll(pattern)].map(
      ([text]) => `${path}: ${text}`,
    ),
  )
  expect(found).toEqual([])
})
