import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { type Sandbox, startSandbox } from '../../src/sandbox/start.ts'
import type { SandboxOptions } from '../../src/sandbox/state.ts'
import { serve } from './gateway.ts'

export const SHOP = { merchantCode: 'UFLIYL', secret: '311235E7043244EC8306F96720748C56' }

/** Calls the control routes of the sandbox that runs now. */
export function makeControl(find: () => { url: string }) {
  return (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${find().url}/sandbox${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
}

/** A sandbox gateway for one test, with its controls. */
export type SandboxRig = Sandbox & {
  control(method: string, path: string, body?: unknown): Promise<Response>
  /** The entries of the journal. */
  readCalls(command: string): Promise<Record<string, unknown>[]>
  askToken(body?: Record<string, unknown>): Promise<Response>
  /** Requests a token for the first account's default client. */
  fetchToken(): Promise<string>
  /** Reads virtual cards; `token: null` sends no header. */
  readCards(path: string, more?: { token?: string | null; language?: string }): Promise<Response>
}

const Calls = z.object({ data: z.array(z.record(z.string(), z.unknown())) })
const Token = z.object({ access_token: z.string() })

/** Starts a sandbox that is closed after the test. */
export async function useSandbox(options: Partial<SandboxOptions> = {}): Promise<SandboxRig> {
  const sandbox = await startSandbox({ accounts: [SHOP], ...options })
  onTestFinished(() => sandbox.stop())
  const { url } = sandbox

  const control = makeControl(() => sandbox)
  const askToken = (body: Record<string, unknown> = {}) =>
    fetch(`${url}/v2/auth/oauth2/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        grant_type: 'client_credentials',
        client_id: 'UFLIYL',
        client_secret: 'sandbox-UFLIYL',
        ...body,
      }),
    })
  const fetchToken = async () => Token.parse(await (await askToken()).json()).access_token

  return {
    ...sandbox,
    control,
    askToken,
    fetchToken,
    async readCalls(command) {
      const answer = await control('GET', `/calls?command=${command}`)
      return Calls.parse(await answer.json()).data
    },
    async readCards(path, { token, language } = {}) {
      const bearer = token === undefined ? await fetchToken() : token
      return fetch(`${url}/v2/vc/virtual-cards${path}`, {
        headers: {
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
          ...(language === undefined ? {} : { 'accept-language': language }),
        },
      })
    },
  }
}

/** A merchant's notification endpoint: gives `answers` in turn, then acknowledges. */
export type Merchant = { ipnUrl: string; received: string[]; answers: MerchantAnswer[] }
export type MerchantAnswer = { status: number; body: string }

/** Starts a merchant's notification endpoint, closed after the test. */
export async function useMerchant(): Promise<Merchant> {
  const received: string[] = []
  const answers: MerchantAnswer[] = []
  const { url } = await serve((response, { body: sent }) => {
    received.push(sent)
    const { status, body } = answers.shift() ?? { status: 200, body: '{"respcode":0}' }
    response.writeHead(status).end(body)
  })
  return { ipnUrl: `${url}/ipn`, received, answers }
}
