import { z } from '@hono/zod-openapi'

/** The members of a card envelope (specification 2.1) beside `data`, for the OpenAPI document. */
export const CARD_ENVELOPE = {
  code: z.number().openapi({
    description: '`GATEWAY_CARDS_SUCCESS_CODE`: any other code is a problem here',
    example: 1,
  }),
  state: z.number().nullish().openapi({ description: 'The state of the response', example: 2 }),
  message: z
    .string()
    .nullish()
    .openapi({ description: "The gateway's message", example: 'Successful' }),
  /** Some gateways write it as a number. */
  svcResponseId: z.union([z.string(), z.number()]).nullish().openapi({
    description: 'The identifier of the response; `svc` stands for `GATEWAY_FIELD_PREFIX`',
  }),
}
