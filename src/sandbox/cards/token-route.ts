import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { z } from 'zod'
import { answerRequest, isErrorStatus } from '../faults/apply-fault.ts'
import { takeFault } from '../faults/take-fault.ts'
import { recordEntry, type TokenEntry } from '../journal.ts'
import type { SandboxState } from '../state.ts'
import { readParams, writeJson } from '../wire-format.ts'
import { findClient, isKnownClient, issueToken } from './tokens.ts'

const text = z.string().min(1)

const tokenRequest = z.object({
  grant_type: text,
  client_id: text,
  client_secret: text,
  scope: z.string().optional(),
})

type TokenAnswer = { status: number; body: unknown }

const SUCCESS = { code: 1, message: 'Successful' }

/**
 * Issues tokens for virtual cards by client credentials (RFC 6749 section 4.4), requested as JSON or
 * as a form. A refusal is `{error, error_description}` (section 5.2), with 401 for an invalid client.
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
    const execute = async () => {
      const answer = grantToken(state, params)
      entry.workStatus = answer.status
      return answer
    }
    const send = ({ status, body }: TokenAnswer) => {
      entry.status = status
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      }
      return new Response(writeJson(body), { status, headers })
    }
    const write = ({ body }: TokenAnswer) => writeJson(body)
    const { background } = state
    const exchange = { c, background, execute, refuse: refuseWithCode, send, write }
    return answerRequest(fault, entry, exchange)
  }
}

function grantToken(
  { tokens }: SandboxState,
  params: Readonly<Record<string, unknown>>,
): TokenAnswer {
  const { data: request, error } = tokenRequest.safeParse(params)
  if (error !== undefined) {
    const name = error.issues[0]?.path.join('.')
    return refuse(
      400,
      'invalid_request',
      `${name} is missing or not a string (JSON needs its content-type)`,
    )
  }
  if (request.grant_type !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'grant_type must be client_credentials')
  }
  const client = findClient(tokens, request.client_id, request.client_secret)
  if (client === undefined) return refuse(401, 'invalid_client', 'unknown client or wrong secret')
  const scopes = request.scope?.split(' ').filter(Boolean) ?? []
  if (client.scopes.length > 0 && !scopes.every((scope) => client.scopes.includes(scope))) {
    return refuse(400, 'invalid_scope', 'the client does not have this scope')
  }
  const token = {
    access_token: issueToken(tokens, client.merchantCodes),
    token_type: 'Bearer',
    expires_in: tokens.mode.lifetimeS,
  }
  const body = tokens.mode.nested ? { ...SUCCESS, data: token } : { ...SUCCESS, ...token }
  return { status: 200, body }
}

function refuse(status: number, error: string, description: string): TokenAnswer {
  return { status, body: { error, error_description: description } }
}

/** For faults: codes from 400 to 599 are the HTTP status; others are a success without a token. */
function refuseWithCode(code: number): TokenAnswer {
  if (isErrorStatus(code)) {
    return refuse(code, code === 401 ? 'invalid_client' : 'server_error', 'refused by a fault')
  }
  return { status: 200, body: { code, message: 'Failed' } }
}
