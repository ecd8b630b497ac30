import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/cli/command.ts'
import { runCli as runStreams } from '../../../src/cli/run.ts'
import { readBody } from '../../../src/cli/sign.ts'
import { runCli, spawnCli } from '../../support/cli.ts'
import { PUBLISHED_REFUND, PUBLISHED_REFUND_HASH } from '../../support/published.ts'
import { MERCHANT } from '../../support/service.ts'

const BODY = JSON.stringify(PUBLISHED_REFUND)

/** Runs a command with nothing in its environment but what is given. */
async function run(
  args: string[],
  body = '',
  env: Record<string, string> = { SIGNING_SECRET: MERCHANT.secret },
  runIn = runCli,
) {
  const { code, out, err } = await runIn(args, env, body)
  expect(out + err).not.toContain(MERCHANT.secret)
  return { code, out, err }
}

it('as a process, data goes to standard output, messages to standard error, and the exit code tells the result', async () => {
  const signed = { ...PUBLISHED_REFUND, svc_SecureHash: PUBLISHED_REFUND_HASH }
  const changed = JSON.stringify({ ...signed, svc_Amount: 10001 })
  const [wrong, unused] = await Promise.all([
    run(['verify'], changed, undefined, spawnCli),
    run(['sing'], '', {}, spawnCli),
  ])
  expect(wrong).toMatchObject({ code: 1, err: '', out: expect.stringContaining('NOT VALID') })
  expect(unused).toMatchObject({ code: 2, out: '' })
  expect(unused.err).toMatch(/^error: unknown command 'sing'.*\n$/)
})

it('an unexpected error is no wrong use', async () => {
  let err = ''
  const code = await runStreams(['sign'], {
    name: 'cli',
    env: { SIGNING_SECRET: MERCHANT.secret },
    input: Readable.from([BODY]),
    print() {
      throw new Error('the disk is full')
    },
    printError(text) {
      err += text
    },
  })
  expect({ code, err }).toEqual({
    code: 1,
    err: 'error: unexpected error: Error: the disk is full\n',
  })
})

it('sign shows names, values, what is left out, the string to sign and the published hash', async () => {
  const { code, out, err } = await run(['sign'], BODY)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const names = [...out.matchAll(/^ {2}(svc_\w+) /gm)].map(([, name]) => name)
  const signed = ['Amount', 'Command', 'MerchantCode', 'PaymentID', 'Receiver', 'Version']
  expect(names.slice(0, 6)).toEqual(signed.map((name) => `svc_${name}`))
  expect(out).toContain('\nLeft out: svc_RequestID\n')
  expect(out).toContain(`  10000REFUNDUFLIYL1439211${PUBLISHED_REFUND.svc_Receiver}1<secret>\n`)
  expect(out).toContain(`  ${PUBLISHED_REFUND_HASH}\n`)
})

describe('a command that cannot run prints one line, with exit code 2', () => {
  it.each([
    ['nothing on standard input', ['sign'], '', /standard input is empty/],
    ['no JSON', ['verify'], '{"svc_A":', /the body is not valid JSON/],
    ['no object', ['sign'], '[1]', /the body is not a JSON object/],
    ['bare words', ['sign'], 'hello', /nor is it a form like a=b&c=d/],
    ['a name twice in a form', ['sign'], 'svc_A=1&svc_A=2', /given twice/],
    [
      'another prefix',
      ['sign'],
      '{"vnx_A":"1"}',
      /no parameter starts with svc_; did you mean --prefix vnx\?/,
    ],
    [
      'an object',
      ['sign'],
      '{"svc_A":{}}',
      /svc_A holds an object .* --exclude TransAmount,ExtData,A$/,
    ],
    ['an unknown option', ['sign', '--secret'], BODY, /unknown option '--secret'/],
    ['an unknown kind', ['sign', '--as', 'gift'], BODY, /It is one of ipn, refund-ipn/],
    [
      'an unusable name',
      ['sign', '--exclude', 'a b'],
      BODY,
      /It must be names separated by commas/,
    ],
    ['an argument', ['sign', 'body.json'], BODY, /too many arguments/],
    ['an unknown command', ['sing'], BODY, /unknown command 'sing'/],
    ['no command', [], BODY, /no command given/],
  ])('%s', async (_, args, body, words) => {
    const { code, out, err } = await run(args, body)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.trimEnd()).toMatch(words)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
  })

  it.each(['npm run -s cli --', 'node dist/cli/main.js'])(
    'and names the program as it was called: %s',
    async (name) => {
      let err = ''
      const streams = { name, env: {}, input: Readable.from(['']), print: () => {} }
      const printError = (text: string) => {
        err += text
      }
      expect(await runStreams(['sing'], { ...streams, printError })).toBe(2)
      expect(err).toBe(`error: unknown command 'sing' (did you mean sign?); see ${name} --help\n`)
      err = ''
      expect(await runStreams(['sign'], { ...streams, printError })).toBe(2)
      expect(err).toContain(`for example: ${name} sign < body.json`)
    },
  )

  it('a secret given as an option is not repeated', async () => {
    const { code, err } = await run(['sign', '--secret=hunter2'], BODY)
    expect(code).toBe(2)
    expect(err).toContain("'--secret'")
    expect(err).not.toContain('hunter2')
  })

  it('no secret for the account', async () => {
    const { code, err } = await run(['sign'], BODY, {})
    expect(code).toBe(2)
    expect(err).toMatch(/no secret: .*; set SIGNING_SECRET/)
  })

  it('a wrong setting, but only one that signing needs', async () => {
    const { code, err } = await run(['sign'], BODY, { GATEWAY_FIELD_PREFIX: 's-c', PORT: 'http' })
    expect(code).toBe(2)
    expect(err).toMatch(/^error: GATEWAY_FIELD_PREFIX must start with a letter.*\n$/)
  })
})

describe('standard input', () => {
  it('is not read from a terminal', async () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true })
    await expect(readBody({ name: 'cli', input: terminal })).rejects.toThrow(
      /no body on standard input/,
    )
  })

  it('is refused if it is not text or too long', async () => {
    const noText = Readable.from([Buffer.from([0xff])])
    await expect(readBody({ name: 'cli', input: noText })).rejects.toThrow(/not UTF-8/)
    const much = Readable.from(Array.from({ length: 20 }, () => 'x'.repeat(100_000)))
    await expect(readBody({ name: 'cli', input: much })).rejects.toThrow(UsageError)
  })
})
