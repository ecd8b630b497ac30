import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readConfig, readDataKeyConfig, readSigningConfig } from '../../../src/config/config.ts'
import { readSome } from '../../../src/config/environment.ts'
import { listSettingNames, SECRET_SETTINGS } from '../../../src/config/settings.ts'
import { PRODUCTION, readProblems } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let count = 0
/** Writes a file, and returns its path. */
function write(content: string | Buffer): string {
  count += 1
  const file = join(folder, `secret-${count}`)
  writeFileSync(file, content)
  return file
}

/** A valid value of every secret. */
const SECRETS: Record<string, string> = {
  DATABASE_URL: 'postgres://ipn:hunter2@db.example/ipn',
  GATEWAY_SECRET: 'signing-secret',
  GATEWAY_SECRET_PREVIOUS: 'previous-secret',
  GATEWAY_ACCESS_TOKEN: 'token-1',
  GATEWAY_CLIENT_SECRET: 'client-secret',
  API_KEY: '0123456789abcdef-test-key-with-every-scope',
  DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  DATA_ENCRYPTION_KEY_PREVIOUS: Buffer.alloc(32, 2).toString('base64'),
  SIGNING_SECRET: 'signing',
}
const { API_KEY = '' } = SECRETS
const { DATA_ENCRYPTION_KEY } = PRODUCTION
const { GATEWAY_SECRET: _, ...WITHOUT_SECRET } = PRODUCTION

describe('a secret', () => {
  it('has a test here, and every setting that looks like one is in the list', () => {
    expect(Object.keys(SECRETS)).toEqual([...SECRET_SETTINGS])
    const looks = listSettingNames().filter((name) =>
      /_(KEY|ACCESS_TOKEN)(_PREVIOUS)?$|SECRET|PASSW|^DATABASE_.*URL$/.test(name),
    )
    expect(looks.filter((name) => !SECRET_SETTINGS.includes(name))).toEqual([])
  })

  it.each(Object.entries(SECRETS))(
    '%s can be read from a file, as if it were set',
    (name, text) => {
      const clash = name === 'GATEWAY_CLIENT_SECRET' ? { GATEWAY_CLIENT_ID: 'shop' } : {}
      const { [name]: _, ...others }: Record<string, string> = { ...PRODUCTION, ...clash }
      const config = readConfig({ ...others, [`${name}_FILE`]: write(`${text}\n`) })
      expect(config).toEqual(readConfig({ ...others, [name]: text }))
      expect(JSON.stringify(config)).toContain(JSON.stringify(text).slice(1, -1))
    },
  )

  it.each([
    ['without a newline at its end', 'secret', 'secret'],
    ['with one', 'secret\n', 'secret'],
    ['with one of Windows', 'secret\r\n', 'secret'],
    ['with two, of which one belongs to the secret', 'secret\n\n', 'secret\n'],
    ['with spaces around it, which belong to it', ' secret \n', ' secret '],
    ['of several lines', 'se\ncret\n', 'se\ncret'],
    ['of the largest size', 'x'.repeat(65_536), 'x'.repeat(65_536)],
  ])('is the content of a file %s', (_, content, expected) => {
    const config = readConfig({ ...WITHOUT_SECRET, GATEWAY_SECRET_FILE: write(content) })
    expect(config.accounts[0].secret).toBe(expected)
  })

  it('counts in the command line as well', () => {
    const url = 'postgres://ipn:hunter2@db.example/ipn'
    expect(readSome({ DATABASE_URL_FILE: write(url) }, ['DATABASE_URL']).DATABASE_URL).toBe(url)
    const key = { DATA_ENCRYPTION_KEY_FILE: write(DATA_ENCRYPTION_KEY) }
    expect(readDataKeyConfig(key).current).toBe(DATA_ENCRYPTION_KEY)
    expect(readSigningConfig({ SIGNING_SECRET_FILE: write('s1\n') }).SIGNING_SECRET).toBe('s1')
    expect(() => readSigningConfig({ SIGNING_SECRET_FILE: join(folder, 'none') })).toThrow(
      /^SIGNING_SECRET_FILE must name a file/,
    )
  })
})

describe('a file that cannot be used', () => {
  const nothing = join(folder, 'nothing')
  it.each([
    ['is missing', () => nothing, 'ENOENT'],
    ['is a folder', () => folder, 'it is not that'],
    ['is empty', () => write(''), 'it is not that'],
    ['holds only a newline', () => write('\n'), 'it is not that'],
    ['is too large', () => write('x'.repeat(65_537)), 'it is not that'],
    ['is no text', () => write(Buffer.of(0xff, 0xfe)), 'ERR_ENCODING_INVALID_ENCODED_DATA'],
    [
      'is a pipe, which would block the start',
      () => {
        const pipe = join(folder, 'pipe')
        execFileSync('mkfifo', [pipe])
        return pipe
      },
      'it is not that',
    ],
  ])('gives one line that names it: it %s', (_, make, why) => {
    const file = make()
    expect(readProblems({ ...PRODUCTION, API_KEY_FILE: file })).toEqual([
      `API_KEY_FILE must name a file of 1 byte to 64 KiB of UTF-8 text (got "${file}": ${why})`,
    ])
  })

  it.skipIf(process.getuid?.() === 0)('gives one line when it may not be read', () => {
    const file = write('x')
    chmodSync(file, 0)
    expect(readProblems({ ...PRODUCTION, API_KEY_FILE: file }).join()).toContain('EACCES')
  })

  it('is not also reported as a setting that is missing', () => {
    expect(readProblems({ ...WITHOUT_SECRET, GATEWAY_SECRET_FILE: nothing })).toEqual([
      expect.stringMatching(/^GATEWAY_SECRET_FILE must name a file/),
    ])
  })

  it('cannot be combined with the secret itself', () => {
    const lines = readProblems({ ...PRODUCTION, API_KEY, API_KEY_FILE: write(API_KEY) })
    expect(lines).toEqual(['API_KEY_FILE cannot be combined with API_KEY; unset one of them'])
    expect(readProblems({ ...PRODUCTION, API_KEY: '', API_KEY_FILE: write(API_KEY) })).toEqual([])
  })

  it('never shows what it holds', () => {
    const lines = readProblems({ ...PRODUCTION, API_KEY_FILE: write('hunter2') })
    expect(lines).toEqual([expect.stringMatching(/^API_KEY must .*; for example API_KEY=/)])
    expect(lines.join()).not.toContain('hunter2')
  })
})
