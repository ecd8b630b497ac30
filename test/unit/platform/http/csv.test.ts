import { z } from '@hono/zod-openapi'
import { describe, expect, it } from 'vitest'
import { writeCsv } from '../../../../src/http/list.ts'

const Row = z.strictObject({ text: z.string().nullable() })
const write = (text: string | null) => writeCsv(Row, [{ text }])

describe('a cell', () => {
  it.each([
    ['plain', 'plain'],
    ['with, a comma', '"with, a comma"'],
    ['with "quotes"', '"with ""quotes"""'],
    ['two\nlines', '"two\nlines"'],
    ['two\r\nlines', '"two\r\nlines"'],
    ['=1+1', "'=1+1"],
    ['+84 90', "'+84 90"],
    ['-5', "'-5"],
    ['@cmd', "'@cmd"],
    ['\t=1', "'\t=1"],
    ['\r=1', '"\'\r=1"'],
    ['="a,b"', '"\'=""a,b"""'],
    [' =1', ' =1'],
    ["'=1", "'=1"],
    ['', ''],
    [null, ''],
    ['Nguyễn Văn A', 'Nguyễn Văn A'],
  ])('%j is written %j', (text, cell) => {
    expect(write(text)).toBe(`text\r\n${cell}\r\n`)
  })
})

it('columns are those of the schema, whatever the rows hold', () => {
  const Schema = z.strictObject({
    id: z.string(),
    hold: z.strictObject({ reason: z.string(), by: z.string() }).nullable(),
    more: z.strictObject({ by: z.string() }).optional(),
    list: z.array(z.strictObject({ a: z.int() })),
    metadata: z.record(z.string(), z.string()),
    times: z.int(),
    final: z.boolean(),
  })
  const header = 'id,hold.reason,hold.by,more.by,list,metadata,times,final\r\n'
  expect(writeCsv(Schema, [])).toBe(header)
  const row = {
    id: '1',
    hold: null,
    list: [{ a: 1 }],
    metadata: { a: '=b' },
    times: -1,
    final: true,
  }
  expect(writeCsv(Schema, [row])).toBe(`${header}1,,,,"[{""a"":1}]","{""a"":""=b""}",-1,true\r\n`)
  const held = { ...row, hold: { reason: '-', by: 'ops' } }
  expect(writeCsv(Schema, [held])).toContain("1,'-,ops,,")
})

it('the columns of a union are those of all its members, each once', () => {
  const Union = z.discriminatedUnion('type', [
    z.strictObject({ at: z.string(), type: z.literal('a'), one: z.string() }),
    z.strictObject({ at: z.string(), type: z.literal('b'), two: z.string() }),
  ])
  expect(writeCsv(Union, [{ at: 't', type: 'b', two: '2' }])).toBe('at,type,one,two\r\nt,b,,2\r\n')
})
