import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readBody } from '../../src/cli/read-body.ts'
import { UsageError } from '../../src/cli/usage-error.ts'
import { MERCHANT } from '../support/service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HASH = '88cafbc3bc1312a4dbae11dedf17819ea6462b85a218298417a917f1797597fa'
const REFUND = {
  svc_MerchantCode: 'UFLIYL',
  svc_Command: 'REFUND',
  svc_RequestID: 'a68de39f-ea76-43fb-848f-b605b4aaf44e',
  svc_PaymentID: '1439211',
  svc_Amount: 10000,
  svc_Version: '1',
  svc_Receiver:
    'eyJhY2NvdW50TmFtZSI6Ik5HVVlFTiBWQU4gQSIsImFjY291bnROdW1iZXIiOiIxMjM0NTY3ODkiLCJzd2lmdENvZGUiOiJBU0NCVk5WWCJ9',
}
const BODY = JSON.stringify(REFUND)

/** The command as `npm run cli --` starts it, with nothing in its environment but what is given. */
async function run(
  args: string[],
  body = '',
  env: Record<string, string> = { SIGNING_SECRET: MERCHANT.secret },
) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', ...env },
  })
  const ended = once(child, 'close')
  child.stdin.on('error', () => {})
  child.stdin.end(body)
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  await ended
  expect(out + err).not.toContain(MERCHANT.secret)
  return { code: child.exitCode, out, err }
}

it('sign shows names, values, what is left out, the string to sign and the published hash', async () => {
  const { code, out, err } = await run(['sign'], BODY)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const names = [...out.matchAll(/^ {2}(svc_\w+) /gm)].map(([, name]) => name)
  const signed = ['Amount', 'Command', 'MerchantCode', 'PaymentID', 'Receiver', 'Version']
  expect(names).toEqual([...signed, 'RequestID'].map((name) => `svc_${name}`))
  expect(out).toContain(`  10000REFUNDUFLIYL1439211${REFUND.svc_Receiver}1<secret>\n`)
  expect(out).toContain(`  ${HASH}\n`)
})

it('verify ends with 0 for a right hash and with 1 for a wrong one', async () => {
  const signed = { ...REFUND, svc_SecureHash: HASH }
  expect(await run(['verify'], JSON.stringify(signed))).toMatchObject({ code: 0, err: '' })
  const wrong = await run(['verify'], JSON.stringify({ ...signed, svc_Amount: 10001 }))
  expect(wrong).toMatchObject({ code: 1, err: '', out: expect.stringContaining('NOT VALID') })
})

describe('a call that cannot be carried out is one line and exit code 2', () => {
  it.each([
    ['nothing on standard input', ['sign'], '', /standard input is empty/],
    ['no JSON', ['verify'], '{"svc_A":', /the body is not valid JSON/],
    ['no object', ['sign'], '[1]', /the body is not a JSON object/],
    ['bare words', ['sign'], 'hello', /no form like a=b&c=d/],
    ['a name twice in a form', ['sign'], 'svc_A=1&svc_A=2', /given twice/],
    [
      'another prefix',
      ['sign'],
      '{"vnx_A":"1"}',
      /no parameter starts with svc_; is it --prefix vnx\?/,
    ],
    [
      'an object',
      ['sign'],
      '{"svc_A":{}}',
      /svc_A holds an object .* --exclude TransAmount,ExtData,A$/,
    ],
    ['an unknown option', ['sign', '--secret'], BODY, /unknown option '--secret'/],
    ['an unknown kind', ['sign', '--as', 'gift'], BODY, /Allowed choices are ipn, refund-ipn/],
    ['an unusable name', ['sign', '--exclude', 'a b'], BODY, /Write names joined by commas/],
    ['an argument', ['sign', 'body.json'], BODY, /too many arguments/],
    ['an unknown command', ['sing'], BODY, /unknown command 'sing'/],
    ['no command', [], BODY, /no command/],
  ])('%s', async (_, args, body, words) => {
    const { code, out, err } = await run(args, body)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.trimEnd()).toMatch(words)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
  })

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
    expect(err).toMatch(/^error: GATEWAY_FIELD_PREFIX must be letters and digits.*\n$/)
  })
})

describe('standard input', () => {
  it('that is a terminal is not waited for', async () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true })
    await expect(readBody(terminal)).rejects.toThrow(/no body on standard input/)
  })

  it('that is no text, or too much of it, is refused', async () => {
    await expect(readBody(Readable.from([Buffer.from([0xff])]))).rejects.toThrow(/not UTF-8/)
    const much = Readable.from(Array.from({ length: 20 }, () => 'x'.repeat(100_000)))
    await expect(readBody(much)).rejects.toThrow(UsageError)
  })
})
