import { z } from '@hono/zod-openapi'
import { withScope } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { BODY_REFUSALS, describeRefusals } from '../http/describe.ts'
import { isUuid, MerchantCode } from '../http/fields.ts'
import { type EndpointRequest, endpointNotFound, listVisibleOwners } from './find-endpoints.ts'

export const shared = { tags: ['Webhooks'], ...withScope('webhooks:write') }

/** The endpoint in a path. */
export const params = z.object({
  endpointId: z.string().openapi({
    description: 'The `id` of the endpoint; anything but a UUID is answered 404',
    example: '5f0c2f0e-2b0d-4f7a-9d2e-0f6f0a8f3c55',
  }),
})
export const query = z.strictObject({ merchantCode: MerchantCode })
export const refusals = describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found')

/** @throws DomainError `webhook_endpoint_not_found` for an id that is no UUID */
export function readRequest(
  access: Access,
  { endpointId }: z.infer<typeof params>,
  { merchantCode: named }: z.infer<typeof query>,
): EndpointRequest {
  const owners = listVisibleOwners(access, named)
  if (!isUuid(endpointId)) throw endpointNotFound(endpointId)
  // Lower case, as stored: the secret is encrypted with the id as its context.
  return { access, id: endpointId.toLowerCase(), owners }
}
