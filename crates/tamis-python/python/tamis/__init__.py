"""Have I seen this key before?"""
