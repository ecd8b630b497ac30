import { DomainError } from '../errors.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type ChangeContext, commitChange, ENDPOINT_PATH } from './change-endpoint.ts'
import type { WebhooksContext } from './context.ts'
import { type EndpointRequest, requireReadable } from './find-endpoints.ts'
import {
  generateSecret,
  openSecrets,
  placePreviousSecret,
  placeSecret,
  type StoredSecrets,
} from './secrets.ts'

/** Which of the valid secrets stays valid beside the new one, and for how long (s). */
export type Rotation = { keep?: 'current' | 'previous' | undefined; previousValidForS: number }

/** `previousSecretValidUntil` is null when only the new secret is valid. */
export type RotatedSecret = { id: string; secret: string; previousSecretValidUntil: string | null }

/**
 * Gives an endpoint a new secret, which is returned only here. Every webhook is signed with it and, until its time has
 * come, with the one before, so that the receiver can change over without refusing any.
 *
 * While two secrets are valid, the caller has to name the one to keep. If the answer to the first rotation was lost, the
 * receiver still uses the previous one; a repeated request that dropped it would cut the receiver off.
 * @throws DomainError `webhook_endpoint_not_found`, `secret_rotating`, `invalid_request` on `keep`, and `scope_missing`
 *   when the key may not read what the secret signs
 */
export async function rotateSecret(
  ctx: ChangeContext & Pick<WebhooksContext, 'encryption'>,
  request: EndpointRequest,
  rotation: Rotation,
): Promise<RotatedSecret> {
  const { access, id } = request
  const secret = generateSecret()
  const operation = `POST ${ENDPOINT_PATH}/rotate-secret`
  return await commitChange(ctx, request, operation, async (tx, before) => {
    requireReadable(access, before)
    const [current = '', previous] = openSecrets(
      ctx.encryption,
      id,
      await requireDecided(tx, id, rotation),
    )
    const kept = rotation.keep === 'previous' ? (previous ?? '') : current
    const isKept = rotation.previousValidForS > 0
    const [row] = await tx<{ until: string | null }[]>`
      update webhook_endpoints set secret = ${ctx.encryption.encrypt(secret, placeSecret(id))},
        previous_secret = ${isKept ? ctx.encryption.encrypt(kept, placePreviousSecret(id)) : null},
        previous_secret_until = ${isKept ? tx`now() + ${rotation.previousValidForS} * interval '1 second'` : null}
      where id = ${id} returning previous_secret_until::text as until`
    return { id, secret, previousSecretValidUntil: toIso(row?.until ?? null) }
  })
}

/** Returns the valid secrets of a locked endpoint. @throws DomainError `secret_rotating`, `invalid_request` */
async function requireDecided(
  tx: Tx,
  endpointId: string,
  { keep }: Rotation,
): Promise<StoredSecrets> {
  const [row] = await tx<(StoredSecrets & { until: string | null })[]>`
    select secret, case when previous_secret_until > now() then previous_secret end as "previousSecret",
      previous_secret_until::text as until
    from webhook_endpoints where id = ${endpointId}`
  if (!row) throw new Error('the locked endpoint is gone')
  if (row.previousSecret && keep === undefined) {
    const detail = `Two secrets are valid until ${toIso(row.until)}: name in keep which of them stays valid beside the new one, current or previous`
    throw new DomainError('secret_rotating', detail)
  }
  if (!row.previousSecret && keep === 'previous') {
    const message = 'must not be previous: only one secret is valid'
    throw new DomainError('invalid_request', `keep: ${message}`, {
      errors: [{ path: 'keep', message }],
    })
  }
  return row
}
