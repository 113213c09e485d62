"""The IPAM provider of the embedded plane: it answers IPAddressClaims from InClusterIPPools and GlobalInClusterIPPools.

A pass over a claim (`claims`) reads the pool and the IPAddress of the claim's name, and creates that with the lowest free address.
A pass over a pool (`pools`) counts its addresses and keeps the pool until none is in use. Claims are answered one at a time, so that
two never get the same address. Claims of other providers' pools are left alone.

Watches: claims; pools; IPAddresses; Clusters, which pause their claims.

Owns the condition Ready of claims, in both forms.
"""
