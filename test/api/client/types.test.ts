import type { z } from '@hono/zod-openapi'
import type * as client from '@ipn-processor/client'
import type { Client, Listing } from '@ipn-processor/client'
import type { ExtractSchema } from 'hono/types'
import { expectTypeOf, it } from 'vitest'
import type { Payment } from '../../../src/payments/view.ts'
import type { Refund } from '../../../src/refunds/view.ts'
import type { transactionRoutes } from '../../../src/transactions/routes.ts'
import type { Transaction } from '../../../src/transactions/view.ts'

// The types are generated from the OpenAPI document, which `npm run check` repeats. These claims are about the generator:
// what it writes is what the schemas say. The compiler checks them; at run time they do nothing.

it('the generated types are those of the schemas, member by member', () => {
  expectTypeOf<z.infer<typeof Transaction>>().toExtend<client.Transaction>()
  expectTypeOf<z.infer<typeof Payment>>().toExtend<client.Payment>()
  expectTypeOf<z.infer<typeof Refund>>().toExtend<client.Refund>()
  expectTypeOf<keyof client.Transaction>().toEqualTypeOf<keyof z.infer<typeof Transaction>>()
  expectTypeOf<keyof client.Payment>().toEqualTypeOf<keyof z.infer<typeof Payment>>()
  expectTypeOf<keyof client.Refund>().toEqualTypeOf<keyof z.infer<typeof Refund>>()
})

it('the filters of a list are those of its route, except the account, which the client names', () => {
  type Routes = ExtractSchema<ReturnType<typeof transactionRoutes>>
  type Query = Routes['/v1/transactions']['$get']['input']['query']
  type Filter = NonNullable<Parameters<Client['transactions']['list']>[0]>
  expectTypeOf<keyof Filter>().toEqualTypeOf<Exclude<keyof Query, 'merchantCode'>>()
  expectTypeOf<ReturnType<Client['transactions']['list']>>().toEqualTypeOf<
    Listing<client.Transaction>
  >()
})

it('cards have exact texts for amounts and identifiers, and numbers for the rest', () => {
  type Policy = NonNullable<client.VirtualCard['cardPolicy']>
  expectTypeOf<Policy['cardLimit']>().toEqualTypeOf<string | null | undefined>()
  expectTypeOf<Policy['policyRevision']>().toEqualTypeOf<number | null | undefined>()
  expectTypeOf<client.ListedCard['merchantId']>().toEqualTypeOf<string | null | undefined>()
})
