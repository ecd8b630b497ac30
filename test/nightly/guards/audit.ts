import type { Guard } from './guard.ts'

export const AUDIT: readonly Guard[] = [
  {
    file: 'src/audit-chain/chain-entries.ts',
    text: '    if (why) left.set(code, why)\n    else links',
    mutation: '    if (why) left.set(code, why)\n    links',
    test: 'test/api/audit-chain/chain-entries.test.ts',
    claim: 'the pass signs nothing after a deleted end, and goes on with other accounts',
    control:
      'the pass chains the entries of each account, and those of none, in batches of any size',
  },
  {
    file: 'src/audit-chain/chain-entries.ts',
    text: '      if (!turn?.mine) return undefined\n',
    mutation: '      if (!turn) return undefined\n',
    test: 'test/api/audit-chain/chain-entries.test.ts',
    claim: 'the pass runs in one process at a time: the other does nothing',
    control:
      'the pass chains the entries of each account, and those of none, in batches of any size',
  },
  {
    file: 'src/audit-chain/verify-chain.ts',
    text: '    if (computed.equals(hash)) walk.verified += 1\n    else',
    mutation: '    if (computed.length > 0) walk.verified += 1\n    else',
    test: 'test/api/audit-chain/verify.test.ts',
    claim: "a change of one entry is found: object_id becomes 'object-1'",
    control: 'a change of one entry is found: id becomes 999',
  },
  {
    file: 'src/audit-chain/verify-chain.ts',
    text: "  if (position < headPosition) addFinding(list, 'cut_off', position + 1)\n  else if",
    mutation: '  if',
    test: 'test/api/audit-chain/verify.test.ts',
    claim: 'tampering with the log is found: the same, and the gap is closed',
    control:
      'tampering with the log is found: an entry is linked into the chain of another account',
  },
  {
    file: 'src/audit-chain/verify-chain.ts',
    text: "  else if (!isSigned(encryption, chain)) addFinding(walk.list, 'signature')\n",
    mutation:
      "  else if (!isSigned(encryption, chain) && merchantCode === '') addFinding(walk.list, 'signature')\n",
    test: 'test/api/audit-chain/verify.test.ts',
    claim: "tampering with the log is found: the signed head is another account's",
    control: 'tampering with the log is found: the pass is kept from an entry',
  },
]
