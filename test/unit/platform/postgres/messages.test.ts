import { describe, expect, it } from 'vitest'
import {
  createReader,
  readError,
  readParameter,
} from '../../../../src/platform/postgres/messages.ts'

const message = (type: string, body: string) => {
  const bytes = Buffer.from(body)
  const head = Buffer.from(`${type}\0\0\0\0`)
  head.writeUInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
const error = (severity: string, code: string, routine = 'ProcessInterrupts') =>
  message('E', `S${severity}\0V${severity}\0C${code}\0Mended\0R${routine}\0\0`)
const REPEATED = error('ERROR', '0A000', 'RevalidateCachedQuery')
const READY = message('Z', 'I')
const BEFORE = Buffer.concat([
  message('S', 'in_hot_standby\0off\0'),
  message('D', 'a row with EZEZ in it'),
  message('C', 'SELECT 1\0'),
  error('ERROR', '23505'),
  message('Z', 'I'),
])
const AFTER = message('C', 'COMMIT\0')
const SIZES = Array.from({ length: 120 }, (_, index) => index + 1)

/** Reads the bytes in chunks of a size, until one ends the session. */
function readIn(
  size: number,
  bytes: Buffer,
  { readOnly = false, isOwed = false, isOurs = false } = {},
) {
  let ready = 0
  const read = createReader({
    judge(type, body) {
      if (type === 'E') return readError(body, { readOnly, isOurs: isOurs && ready === 0 })
      if (type === 'S') return readParameter(body, readOnly)
      ready += 1
      return undefined
    },
    isOwed: () => isOwed,
    isOurs: () => isOurs && ready === 0,
  })
  const passed: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const result = read(bytes.subarray(at, at + size))
    passed.push(result.passed)
    if (result.refusal) return { passed: Buffer.concat(passed), ready, ...result.refusal }
  }
  return { passed: Buffer.concat(passed), ready }
}

describe('however a session is cut into chunks, the reader', () => {
  it.each([
    ['the error that ends it', error('FATAL', '57P01'), 'session', '57P01'],
    ['the refusal of a write', error('ERROR', '25006'), 'writes', '25006'],
    ['a standby', message('S', 'in_hot_standby\0on\0'), 'writes', '25006'],
    ['a set-aside primary', message('S', 'default_transaction_read_only\0on\0'), 'writes', '25006'],
  ])('finds %s, and passes on what stands before', (_, last, of, code) => {
    for (const size of SIZES) {
      const found = readIn(size, Buffer.concat([BEFORE, last, AFTER]))
      expect(found.passed.equals(BEFORE), `in chunks of ${size}`).toBe(true)
      expect(found).toMatchObject({ ready: 1, of, error: { code } })
    }
  })

  it('passes everything else on, and to a session that only reads what refuses writes', () => {
    const refusals = [error('ERROR', '25006'), message('S', 'default_transaction_read_only\0on\0')]
    const all = Buffer.concat([BEFORE, ...refusals, AFTER])
    for (const size of SIZES) {
      const found = readIn(size, all, { readOnly: true })
      expect(found.passed.equals(all), `in chunks of ${size}`).toBe(true)
      expect(found).not.toHaveProperty('error')
    }
  })

  it('holds an error back until the server is ready, if it will say so', () => {
    const refused = Buffer.concat([message('2', 'Z'), error('ERROR', '23505')])
    const notice = message('N', 'SNOTICE\0Mthe row is Z\0\0')
    for (const size of SIZES) {
      const early = readIn(size, Buffer.concat([refused, notice]), { isOwed: true })
      expect(early.passed.equals(message('2', 'Z')), `in chunks of ${size}`).toBe(true)
      const whole = Buffer.concat([refused, notice, READY])
      for (const isOwed of [true, false]) {
        expect(readIn(size, whole, { isOwed }).passed.equals(whole)).toBe(true)
      }
      expect(readIn(size, refused).passed.equals(refused)).toBe(true)
    }
  })

  it('ends the rows before an error among them', () => {
    const [rows, refused] = [message('D', 'ZE').toString(), error('ERROR', '57014').toString()]
    const given = Buffer.from(`${rows}${rows}${refused}${READY}${rows}${AFTER}${refused}${READY}`)
    const ended = `${rows}${rows}${message('C', '\0')}${refused}${READY}`
    const expected = Buffer.from(`${ended}${rows}${AFTER}${refused}${READY}`)
    for (const size of SIZES) {
      for (const isOwed of [true, false]) {
        const { passed } = readIn(size, given, { isOwed })
        expect(passed.equals(expected), `in chunks of ${size}`).toBe(true)
      }
    }
  })

  it('keeps from the driver what is not for it, up to where the server is ready', () => {
    const ours = Buffer.concat([message('T', 'x'.repeat(300)), message('D', 'on'), READY])
    for (const size of SIZES) {
      const found = readIn(size, Buffer.concat([ours, BEFORE, AFTER]), { isOurs: true })
      expect(found.passed.equals(Buffer.concat([BEFORE, AFTER])), `in chunks of ${size}`).toBe(true)
    }
  })

  it('ends a session whose statement the driver would repeat', () => {
    const found = readIn(500, Buffer.concat([REPEATED, READY]))
    expect(found).toMatchObject({ of: 'session', error: { code: '0A000' } })
  })
})

it('an error of what raises the level of commits ends the session', () => {
  expect(readIn(500, error('ERROR', '42501'), { isOurs: true })).toMatchObject({
    of: 'session',
    error: { code: '42501' },
  })
})
