import type { Hold } from './api-types.ts'
import type { CallOptions } from './options.ts'
import { type Transport, writeSegment } from './transport.ts'

/** What can be held: an account, a payment with all its refunds, or a single refund. */
export type HoldTarget = 'merchant' | 'payment' | 'refund'

/** The hold of something after a change; null when it is not held. */
export type HoldState = {
  target: HoldTarget
  id: string
  merchantCode: string
  hold: Hold | null
}

export type Holds = {
  /**
   * Sets a hold: from then on nothing of the target is sent. The key needs the scope `ops`.
   * @throws NotFoundError
   */
  set(target: HoldTarget, id: string, reason: string, options?: CallOptions): Promise<HoldState>
  /**
   * Releases a hold. The key needs the scope `ops`.
   * @throws NotFoundError, ConflictError `not_held`
   */
  release(target: HoldTarget, id: string, reason: string, options?: CallOptions): Promise<HoldState>
}

/** Creates the methods of `client.holds`. */
export function createHolds(transport: Transport): Holds {
  const change =
    (method: 'PUT' | 'DELETE'): Holds['set'] =>
    (target, id, reason, options) => {
      const path = `/v1/holds/${target}/${writeSegment('id', id)}`
      return transport.request<HoldState>({ method, path, body: { reason } }, options)
    }
  return { set: change('PUT'), release: change('DELETE') }
}
