import { expect, it } from 'vitest'
import { findShortSecrets } from '../../../src/config/accounts.ts'

const LONG = '0123456789abcdef'

it('a short signing secret is named by its account, current or previous, and never shown', () => {
  const found = findShortSecrets([
    { merchantCode: 'SHOP1', secret: LONG, previousSecret: 'hunter2' },
    { merchantCode: 'SHOP2', secret: 'hunter2' },
    { merchantCode: 'SHOP3', secret: LONG },
  ])
  expect(found).toEqual([
    { merchantCode: 'SHOP1', which: 'previousSecret' },
    { merchantCode: 'SHOP2', which: 'secret' },
  ])
})

it('a short signing secret is none of 16 characters', () => {
  expect(findShortSecrets([{ merchantCode: 'SHOP1', secret: LONG }])).toEqual([])
})
