import { type Guard, guards } from './guard.ts'

export const ADDRESSES: readonly Guard[] = [
  ...guards({ file: 'src/platform/outbound/addresses.ts' }, [
    {
      text: "  if (METADATA_ADDRESSES.includes(parsed.toString())) return 'never'\n",
      mutation: "  if (METADATA_ADDRESSES.includes(address) && address === '') return 'never'\n",
      test: 'test/api/webhooks/addresses.test.ts',
      claim:
        'an address is never: 168.63.129.16,::ffff:168.63.129.16,64:ff9b::a83f:8110,2002:a83f:8110::1',
      control: 'an address is private: 10.0.0.1,172.16.0.1,172.31.255.255,192.168.1.1',
    },
    {
      text: "  if (isIsatap(parsed)) return 'never'\n",
      mutation: "  if (address === '' && isIsatap(parsed)) return 'never'\n",
      test: 'test/api/webhooks/addresses.test.ts',
      claim:
        'an address is never: fc00::5efe:a00:1,fe80::5efe:a9fe:a9fe,::5efe:10.0.0.1,::200:5efe:127.0.0.1',
      control:
        'an address is never: 224.0.0.1,ff02::1,100.64.0.1,192.0.0.1,192.0.2.1,198.18.0.1,203.0.113.1',
    },
    {
      text: '  if (parsed.isIPv4MappedAddress()) return classifyAddress(parsed.toIPv4Address().toString())\n',
      mutation: '',
      test: 'test/api/webhooks/addresses.test.ts',
      claim: 'an address is loopback: 127.0.0.1,127.9.9.9,::1,::ffff:127.0.0.1,64:ff9b::7f00:1',
      control:
        'an address is never: 240.0.0.1,::169.254.169.254,64:ff9b:1::808:808,::ffff:0:a9fe:a9fe,2001::1',
    },
    {
      text: "  if (kind === 'public' && isPlain) throw new AddressError('must start with https://')\n",
      mutation: '  void isPlain\n',
      test: 'test/api/webhooks/addresses.test.ts',
      claim: 'a URL with plain http is accepted for private addresses only, where they are allowed',
      control: 'an address is loopback: 127.0.0.1,127.9.9.9,::1,::ffff:127.0.0.1,64:ff9b::7f00:1',
    },
  ]),
  ...guards({ file: 'src/webhooks/send.ts', test: 'test/api/webhooks/addresses.test.ts' }, [
    {
      text: '          for (const address of addresses) requireAllowedAddress(address, plain, reach)\n',
      mutation:
        "          if (plain && hostname === '') requireAllowedAddress(hostname, plain, reach)\n",
      claim:
        'where only this machine may be called beside public addresses 169.254.169.254 may not be, also when a name leads there',
      control:
        'an address is never: 2606:4700::5efe:a00:1,2606:4700::200:5efe:7f00:1,2001:470::0:5efe:808:808',
    },
    {
      text: '          for (const address of addresses) requireAllowedAddress(address, plain, reach)',
      mutation:
        '          for (const address of addresses.slice(0, 1)) requireAllowedAddress(address, plain, reach)',
      claim:
        'a name that leads to a public address followed by a private one is refused when it is registered and when it is called',
      control:
        'an address is never: 168.63.129.16,::ffff:168.63.129.16,64:ff9b::a83f:8110,2002:a83f:8110::1',
    },
    {
      text: '      if (isIP(hostname) !== 0) requireAllowedAddress(hostname, isPlain(options), reach)\n',
      mutation:
        '      if (isIP(hostname) > 6) requireAllowedAddress(hostname, isPlain(options), reach)\n',
      claim:
        'a literal address in a URL 0.0.0.0 is refused even where private networks are allowed',
      control: 'an address is loopback: 127.0.0.1,127.9.9.9,::1,::ffff:127.0.0.1,64:ff9b::7f00:1',
    },
  ]),
]
