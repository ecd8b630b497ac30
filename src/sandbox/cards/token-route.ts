import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { z } from 'zod'
import { takeFault } from '../faults/faults.ts'
import { followFault, isErrorStatus } from '../faults/misbehave.ts'
import { recordEntry, type TokenEntry } from '../journal.ts'
import type { SandboxState } from '../state.ts'
import { readParams, writeJson } from '../wire.ts'
import { findClient, isKnownClient, issueToken } from './tokens.ts'

const text = z.string().min(1)

const tokenRequest = z.object({
  grant_type: text,
  client_id: text,
  client_secret: text,
  scope: z.string().optional(),
})

type Answer = { status: number; body: unknown }

const SUCCESS = { code: 1, message: 'Successful' }

/**
 * Tokens for virtual cards by client credentials (RFC 6749 section 4.4), asked for in JSON or as a
 * form. A refusal is `{error, error_description}` (section 5.2); a wrong client gets 401.
 */
export function makeTokenRoute(state: SandboxState) {
  return async (c: Context<{ Bindings: HttpBindings }>): Promise<Response> => {
    const params = readParams(c.req.header('content-type'), await c.req.text(), '') ?? {}
    const clientId = text.safeParse(params.client_id).data
    const fault = takeFault(state.faults, 'token', state.random)
    const entry = recordEntry<TokenEntry>(state.journal, {
      command: 'token',
      at: new Date().toISOString(),
      outcome: fault?.kind ?? 'received',
      status: null,
      workStatus: null,
      clientId: clientId !== undefined && isKnownClient(state.tokens, clientId) ? clientId : null,
    })
    const work = async () => {
      const answer = grant(state, params)
      entry.workStatus = answer.status
      return answer
    }
    const send = ({ status, body }: Answer) => {
      entry.status = status
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      }
      return new Response(writeJson(body), { status, headers })
    }
    const write = ({ body }: Answer) => writeJson(body)
    if (fault) return followFault(fault, { c, state, work, refuse: refuseWithCode, send, write })
    const answer = await work()
    entry.outcome = 'answered'
    return send(answer)
  }
}

function grant({ tokens }: SandboxState, params: Readonly<Record<string, unknown>>): Answer {
  const { data: request, error } = tokenRequest.safeParse(params)
  if (error !== undefined) {
    const name = error.issues[0]?.path.join('.')
    return refuse(400, 'invalid_request', `${name} is missing or no text (JSON has to be declared)`)
  }
  if (request.grant_type !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'grant_type must be client_credentials')
  }
  const client = findClient(tokens, request.client_id, request.client_secret)
  if (client === undefined)
    return refuse(401, 'invalid_client', 'no such client, or a wrong secret')
  const asked = request.scope?.split(' ').filter(Boolean) ?? []
  if (client.scopes.length > 0 && !asked.every((scope) => client.scopes.includes(scope))) {
    return refuse(400, 'invalid_scope', 'the client may not ask for this scope')
  }
  const token = {
    access_token: issueToken(tokens, client.merchantCodes),
    token_type: 'Bearer',
    expires_in: tokens.mode.lifetimeS,
  }
  const body = tokens.mode.nested ? { ...SUCCESS, data: token } : { ...SUCCESS, ...token }
  return { status: 200, body }
}

function refuse(status: number, error: string, description: string): Answer {
  return { status, body: { error, error_description: description } }
}

/** For faults: 400 to 599 is the HTTP status; any other code is a success without a token. */
function refuseWithCode(code: number): Answer {
  if (isErrorStatus(code)) {
    return refuse(code, code === 401 ? 'invalid_client' : 'server_error', 'refused by a fault')
  }
  return { status: 200, body: { code, message: 'Failed' } }
}
